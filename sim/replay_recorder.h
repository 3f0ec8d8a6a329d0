#pragma once

#include <map>
#include <mutex>
#include <string>

#include "runtime/error.h"
#include "runtime/recorder.h"
#include "sim/recorded_rank.h"

namespace tutti {

// Thrown where a replay comes to something else than the record.
class ReplayDifference : public OperatingError {
 public:
  using OperatingError::OperatingError;
};

// A rank's recorder in a replay: answers as the outside did, and compares what the rank comes to.
class ReplayRecorder final : public Recorder {
 public:
  // `exact`: bits are promised; else losses are compared to kTolerance, and nothing else.
  ReplayRecorder(RecordedRank& recorded, bool compare, bool exact);
  static constexpr double kTolerance = 1e-3;  // relative

  void record(const Happening& happening) override { ring_.record(happening); }
  std::vector<Happening> last(int count) const override { return ring_.last(count); }
  void delivered(const Delivery& delivery) override;
  bool digests() const override { return compare_; }
  void digest(const Digest& digest) override;
  void name_parts(std::string_view thing, const std::vector<std::string>& names) override;
  double answer(std::string_view what, double measured) override;
  std::string answer(std::string_view what, std::string measured) override;
  std::optional<double> foretold(std::string_view what) override;

  int64_t compared() const { return compared_; }

 private:
  bool matches(const Digest& digest, const RecordedRank::Hash& recorded) const;
  std::string difference(const Digest& digest, const RecordedRank::Hash& recorded);

  std::mutex mutex_;
  RecordedRank& recorded_;
  bool compare_;
  bool exact_;
  RingRecorder ring_;
  std::map<std::string, std::string> last_message_;  // by actor
  std::map<std::string, std::vector<std::string>> parts_;
  int64_t compared_ = 0;
};

}  // namespace tutti
