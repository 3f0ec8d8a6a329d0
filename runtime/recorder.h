#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/clock.h"
#include "runtime/rank_end.h"
#include "runtime/trace_event.h"

namespace tutti {

// A message at the moment of its receipt. Texts are static or owned by the scheduler.
struct Delivery {
  TimePoint time;
  std::string_view to, from;  // actors of the rank; `from` is "" for messages from outside
  std::string_view message;
};

// A hash that is equal in every run of the same job; the key begins with the actor: "compute/batch",
// "sync/bucket 2". Short hashes of the parts show where two digests differ.
struct Digest {
  std::string_view key;
  int64_t step = 0;
  uint64_t value = 0;
  std::span<const uint16_t> parts = {};
};

// Inputs that the seed does not decide: of a clock, a disk. A replay returns the recorded ones.
enum class RecordedInput : uint8_t {
  kCheckpoint,         // a folder that the run may start from; the last folder counts; or ""
  kCheckpointOwner,    // "own" if this run saved it; asked only where another run could have
  kTrainingSeconds,    //
  kEvaluationSeconds,  //
  kPredictionSeconds,  //
  kFailedAllocation,   // its number within an attempt at a step; 0 = none, -1 = not metered
  kRankFileError,      // of writing this rank's part of a checkpoint; "" = none
  kPublishError,       // of publishing a checkpoint; "" = none
  kVerification,       // of this rank's part of a checkpoint's files: a FilesFound
  kFailedPlace,        // FailedAllocation::place, after a kFailedAllocation that is not 0
};

const char* name(RecordedInput input);  // in journals

// Receives the trace events, digests and inputs of a rank's actors. Thread-safe and cheap.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(const TraceEvent& event) = 0;
  virtual std::vector<TraceEvent> last(int count) const = 0;  // oldest first
  // The same for a signal handler: fills the front of `out`, returns the number of events. Allocates nothing
  // and waits for no lock.
  virtual std::size_t peek(std::span<TraceEvent>) const { return 0; }

  virtual void delivered(const Delivery&) {}
  // True if digests are recorded or compared; else callers need not compute digests.
  virtual bool digests() const { return false; }
  virtual void digest(const Digest&) {}
  // Names the parts of all later digests with this key.
  virtual void name_parts(std::string_view, const std::vector<std::string>&) {}

  // Records and returns the measured value; a replay returns the recorded value.
  virtual double input(RecordedInput, double measured) { return measured; }
  virtual std::string input(RecordedInput, std::string measured) { return measured; }

  // In a replay, the next value of `input`, for callers that need the value earlier; else nullopt.
  virtual std::optional<double> next_input(RecordedInput) { return std::nullopt; }

  // Why the record is incomplete; "" while the record is complete.
  virtual std::string incomplete() const { return ""; }

  // The end of the run on this rank; the last call.
  virtual void end(const RankEnd&) {}
};

// Keeps the last `capacity` trace events for the report of a crash.
class RingRecorder final : public Recorder {
 public:
  explicit RingRecorder(int capacity = 1024);
  void record(const TraceEvent& event) override;
  std::vector<TraceEvent> last(int count) const override;
  std::size_t peek(std::span<TraceEvent> out) const override;

 private:
  mutable std::mutex mutex_;
  std::vector<TraceEvent> events_;
  uint64_t count_ = 0;  // of all events so far
};

}  // namespace tutti
