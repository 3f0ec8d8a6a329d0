#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/journal/journal_reader.h"
#include "io/journal/recorded_run.h"
#include "runtime/recorder.h"
#include "sim/environment/delivery_script.h"

namespace tutti {

// One rank's journal, read as far as it is asked for: what was taken in which order, and beside that the
// digests of each key and the recorded inputs.
class RecordedRank {
 public:
  struct Hash {
    int64_t step = 0;
    uint64_t value = 0;
    std::vector<uint16_t> parts;
  };

  explicit RecordedRank(const std::string& path);

  const RecordedJob& head() const { return head_; }

  const DeliveryScript::Line* next_delivery();
  void taken();
  int64_t deliveries() const { return taken_; }

  // The next one of the key; nothing where the record ends.
  std::optional<Hash> next_hash(const std::string& key);
  std::optional<std::string> take_input(RecordedInput what);
  std::optional<std::string> next_input(RecordedInput what);  // and it stays the next
  const std::vector<std::string>& parts(const std::string& key) { return parts_[key]; }

  // So far as has been read: whether all that the rank came to in a step, as metrics.jsonl counts, is in the
  // record: a later one had begun, or it ended well.
  bool has_all_of(int64_t step) const;
  // What was recorded and nobody has asked for, of all that `counts`: the earliest.
  struct Left {
    int64_t step = 0;  // as metrics.jsonl counts
    std::string key;
  };
  using Counts = std::function<bool(const Left& left)>;
  std::optional<Left> left_over(const Counts& counts) const;

  void read_to_end();

  // How the run ended on this rank: "" when the record breaks off, so far as has been read.
  const std::string& end() const { return end_; }
  bool ended_with_logs() const { return came_to_end_with_logs(end_); }
  std::string text_of_end() const;  // "in step 50, where it was killed or could not be written on"

 private:
  struct Taken {
    std::string to, from, message;
    DeliveryScript::Line line() const { return {to, from, message}; }
  };
  bool read_on();

  JournalCursor cursor_;
  RecordedJob head_;
  std::deque<Taken> deliveries_;
  DeliveryScript::Line line_;
  std::map<std::string, std::deque<Hash>> hashes_;
  std::map<std::string, std::deque<std::string>> inputs_;
  std::map<std::string, std::vector<std::string>> parts_;
  std::string end_;
  std::string incomplete_;  // why it could not be written on
  int64_t taken_ = 0;
  int64_t last_step_ = 0;
  int64_t begun_ = 0;  // the last step that was, from 1
};

}  // namespace tutti
