#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "runtime/regular_file.h"

namespace tutti {

// The lines of a text file that another process appends to, or replaces.
class FollowedFile {
 public:
  explicit FollowedFile(std::string path) : path_(std::move(path)) {}

  // The next whole line without its line break; nullopt if there is none yet, or no file. Lines of more than
  // a megabyte are left out. Throws OperatingError.
  std::optional<std::string> next_line();
  // The number of times that the file was replaced.
  int64_t replaced() const { return opened_ - 1; }

 private:
  bool read_more();
  bool is_replaced() const;

  std::string path_, text_;  // text: of lines not yet returned
  std::size_t begin_ = 0;    // in the text
  std::optional<RegularFile> file_;
  uint64_t identity_ = 0, offset_ = 0;
  int64_t opened_ = 0;
  bool too_long_ = false;  // the line being read
};

// What a run has logged for people: the lines of a rank's log, and beside those of rank 0 the progress and
// the evaluations of metrics.jsonl, in the order of steps as far as lines of the log name a step or a
// checkpoint. No line is made safe for a terminal.
class RunMessages {
 public:
  RunMessages(const std::string& run_dir, int rank);

  using Print = std::function<void(const std::string& line)>;
  // Prints what has been added since the last call: of the steps a line every ten seconds of training, and,
  // if the run `is_over`, the last. Returns false if there was nothing new. Throws OperatingError.
  bool print_new(bool is_over, const Print& print);

 private:
  bool print_metrics(int64_t last_step, const Print& print);
  void print_line_of_metrics(const std::string& line, const Print& print);

  FollowedFile log_;
  std::optional<FollowedFile> metrics_;
  std::optional<std::string> waiting_;  // the next line of metrics.jsonl, of a later step
  std::string hidden_;                  // the newest step's line, not printed; "" = none
  int64_t seen_step_ = 0;
  int64_t skipped_to_ = 0;  // of a replaced file
  double hidden_ms_ = 0;    // of training since a step was printed
};

}  // namespace tutti
