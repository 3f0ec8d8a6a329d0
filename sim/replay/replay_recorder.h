#pragma once

#include <map>
#include <mutex>
#include <string>

#include "runtime/error.h"
#include "runtime/recorder.h"
#include "sim/replay/recorded_rank.h"

namespace tutti {

// Thrown at the first difference between replay and record, or if the replay cannot write its result.
class ReplayFailed : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// The recorded path of a run folder and its present path.
struct MovedFolder {
  std::string from, to;

  std::string operator()(const std::string& path) const;  // maps paths inside the folder
};

// A rank's recorder in a replay: returns recorded inputs and compares digests.
class ReplayRecorder final : public Recorder {
 public:
  struct Options {
    bool compare = true;
    bool exact = true;             // compare bits; else only losses, to kTolerance times the largest so far
    std::optional<int64_t> until;  // the last step to compare
    MovedFolder moved;
  };

  ReplayRecorder(RecordedRank& recorded, Options options);
  static constexpr double kTolerance = 1e-3;

  void record(const TraceEvent& event) override { ring_.record(event); }
  std::vector<TraceEvent> last(int count) const override { return ring_.last(count); }
  void delivered(const Delivery& delivery) override;
  bool digests() const override { return options_.compare; }
  void digest(const Digest& digest) override;
  void name_parts(std::string_view key, const std::vector<std::string>& names) override;
  double input(RecordedInput what, double measured) override;
  std::string input(RecordedInput what, std::string measured) override;
  std::optional<double> next_input(RecordedInput what) override;

  int64_t compared() const { return compared_; }
  // A sentence about the earliest digest of the steps up to `last` (counted as in metrics.jsonl) that is in
  // the record and was not reached; "" if there is none.
  std::string missing(int64_t last);

 private:
  bool is_compared(std::string_view key, int64_t step) const;
  bool matches(const Digest& digest, const RecordedRank::Hash& recorded);
  std::string place(const std::string& key, int64_t step) const;
  std::string after(const std::string& key);
  std::string difference(const Digest& digest, const RecordedRank::Hash& recorded);

  std::mutex mutex_;
  RecordedRank& recorded_;
  Options options_;
  RingRecorder ring_;
  std::map<std::string, std::string> last_message_;  // by actor
  std::map<std::string, std::vector<std::string>> parts_;
  double largest_loss_ = 0;  // recorded so far
  int64_t compared_ = 0;
};

}  // namespace tutti
