#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/clock.h"
#include "runtime/rank_end.h"
#include "runtime/trace_event.h"

namespace tutti {

// A message as its receiver takes it. Texts are static, or the scheduler's own.
struct Delivery {
  TimePoint time;
  std::string_view to, from;  // actors; from "" = from outside the cast
  std::string_view message;
};

// A hash of something that every run of the same job comes to, named by its actor: "compute/batch",
// "sync/bucket 2". The parts' short hashes tell where two differ.
struct Digest {
  std::string_view key;
  int64_t step = 0;
  uint64_t value = 0;
  std::span<const uint16_t> parts = {};
};

// What the outside says where the seed does not decide it: a clock, a disk. A replay hears it again.
enum class RecordedInput : uint8_t {
  kCheckpoint,         // the folder that the run starts from
  kWhoseCheckpoint,    // "own" where it is the run's own, and could be another's
  kTrainingSeconds,    //
  kEvaluationSeconds,  //
  kPredictionSeconds,  //
  kFailedAllocation,   // its number in an attempt; 0 = none, -1 = one that is not metered
  kRankFileError,      // of writing this rank's part of a checkpoint, or ""
  kPublishError,       // of publishing a checkpoint, or ""
  kLogRoom,            // a character a log: whether its queue has room
  kLogsAsked,          // a character a log: whether a checkpoint asks for its records
  kLogsWritten,        // a character a log: whether they were written in time
  kMlperfResult,       // 1 where the file is there
};

const char* name(RecordedInput input);  // as journals have it

// Where actors report what they do, what they come to, and what the outside answered. Thread-safe and cheap
// enough for every message.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(const TraceEvent& event) = 0;
  virtual std::vector<TraceEvent> last(int count) const = 0;  // oldest first
  // The same for the handler of a signal, which may have struck anywhere: fills `out` from its front with the
  // last, and gives their number. Takes no memory, and no lock that might not come.
  virtual std::size_t peek(std::span<TraceEvent>) const { return 0; }

  virtual void delivered(const Delivery&) {}
  // Whether digests are wanted; else there is no need to compute them.
  virtual bool digests() const { return false; }
  virtual void digest(const Digest&) {}
  // Names the parts of the digests with this key, before the first of them.
  virtual void name_parts(std::string_view, const std::vector<std::string>&) {}

  // Records what was measured and returns it; in a replay returns what was recorded.
  virtual double input(RecordedInput, double measured) { return measured; }
  virtual std::string input(RecordedInput, std::string measured) { return measured; }

  // In a replay what `input` returns next, for what must be known before it is measured; else nothing.
  virtual std::optional<double> next_input(RecordedInput) { return std::nullopt; }

  // Why what was recorded is not whole; "" while it is.
  virtual std::string trouble() const { return ""; }

  // How the run ended on this rank; the last that is recorded.
  virtual void end(const RankEnd&) {}
};

// Keeps the last `capacity` trace events for the report of a fatal end.
class RingRecorder final : public Recorder {
 public:
  explicit RingRecorder(int capacity = 1024);
  ~RingRecorder() override;
  void record(const TraceEvent& event) override;
  std::vector<TraceEvent> last(int count) const override;
  std::size_t peek(std::span<TraceEvent> out) const override;

 private:
  struct Ring;
  Ring* ring_;
};

}  // namespace tutti
