#pragma once

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "io/journal/journal_reader.h"
#include "io/journal/recorded_run.h"
#include "runtime/actor/delivery_script.h"
#include "runtime/error.h"
#include "runtime/recorder.h"

namespace tutti {

// One rank's journal, read as far as needed: queues of deliveries, of digests by key, of recorded inputs.
class RecordedRank {
 public:
  struct Hash {
    int64_t step = 0;
    uint64_t value = 0;
    std::vector<uint16_t> parts;
  };

  RecordedRank(const std::string& path, RecordedJob head);

  const RecordedJob& head() const { return head_; }

  const DeliveryScript::Line* next_delivery();
  void advance();
  // True if the record begins with a Join, as records of programs that have this message do.
  bool has_joins();
  int64_t deliveries() const { return deliveries_read_; }

  // Removes and returns the key's next digest; nullopt at the end of the record.
  std::optional<Hash> next_hash(const std::string& key);
  std::optional<std::string> pop_input(RecordedInput what);
  std::optional<std::string> next_input(RecordedInput what);     // does not remove it
  std::optional<std::string> last_of_start(RecordedInput what);  // before the first step; nor does this
  const std::vector<std::string>& parts(const std::string& key) { return parts_[key]; }

  // True if the record holds all of a step (counted as in metrics.jsonl): a later step began, or the rank
  // ended without an error. Considers what has been read so far.
  bool has_whole_step(int64_t step) const;
  // Digests that were read and not yet returned by next_hash, the first of each key, earliest first.
  struct Unused {
    int64_t step = 0;  // counted as in metrics.jsonl
    std::string key;
  };
  std::vector<Unused> unused() const;

  void read_to_end();

  // After reading to the end.
  bool ended_without_error() const { return tutti::ended_without_error(end_); }
  std::string end_description() const;  // "in step 50, where it was killed or could not be written on"
  RecordedSteps begun() const { return begun_; }
  bool is_damaged() const { return cursor_.damaged(); }
  // True if the record ends without a reason: the rank was killed, or the file was cut.
  bool breaks_off() const { return end_.empty() && incomplete_.empty(); }

 private:
  struct OwnedLine {
    std::string to, from, message;
  };
  bool read_record();
  void add(const JournalDelivery& delivery);

  JournalCursor cursor_;
  RecordedJob head_;
  std::deque<OwnedLine> deliveries_;
  std::set<std::string> logs_;  // actors whose messages older journals have
  DeliveryScript::Line line_;
  std::map<std::string, std::deque<Hash>> hashes_;
  std::map<std::string, std::deque<std::string>> inputs_;
  std::map<std::string, std::vector<std::string>> parts_;
  std::string end_;
  std::string incomplete_;  // JournalIncomplete::why
  int64_t deliveries_read_ = 0;
  bool has_joins_ = false;
  int64_t last_step_ = 0;
  RecordedSteps begun_;  // so far
};

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
  static constexpr double kTolerance = 1e-3;
  static constexpr double kTolerance16Bits = 5e-2;  // of another device, whose kernels round elsewhere
  struct Options {
    bool compare = true;
    bool exact = true;             // compare bits; else only losses, to `tolerance` times the largest so far
    std::optional<int64_t> until;  // the last step to compare
    MovedFolder moved;
    bool other_device = false;  // allocations differ: memory runs out at the recorded places
    double tolerance = kTolerance;
  };

  ReplayRecorder(RecordedRank& recorded, Options options);

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
  double number_of_input(RecordedInput what, const std::string& input) const;
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
