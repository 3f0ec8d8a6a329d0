#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/clock.h"

namespace tutti {

// Something that happened on a rank: who, what, and a number or two that tell it apart (step, bucket, bytes).
struct Happening {
  TimePoint time;
  std::string_view actor;  // static strings: recording does not allocate
  std::string_view what;
  int64_t step = -1;
  int64_t detail = 0;
};

// A message as its receiver takes it. Texts are static, or the scheduler's own.
struct Delivery {
  TimePoint time;
  std::string_view to, from;  // actors; from "" = from outside the cast
  std::string_view message;
};

// A hash of something that every run of the same job comes to, named by its actor: "compute/batch",
// "sync/bucket 2". The parts' short hashes tell where two differ.
struct Digest {
  std::string_view thing;
  int64_t step = 0;
  uint64_t value = 0;
  std::span<const uint16_t> parts = {};
};

// Where actors report what they do, what they come to, and what the outside answered. Thread-safe and cheap
// enough for every message.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(const Happening& happening) = 0;
  virtual std::vector<Happening> last(int count) const = 0;  // oldest first
  // The same for the handler of a signal, which may have struck anywhere: fills `out` from its front with the
  // last, and gives their number. Takes no memory, and no lock that might not come.
  virtual std::size_t peek(std::span<Happening>) const { return 0; }

  virtual void delivered(const Delivery&) {}
  // Whether digests are wanted; else there is no need to compute them.
  virtual bool digests() const { return false; }
  virtual void digest(const Digest&) {}
  // Names the parts of the digests of `thing`, before the first of them.
  virtual void name_parts(std::string_view, const std::vector<std::string>&) {}

  // What the outside said where the seed does not decide it (a clock, a disk): gives `measured` back, or in
  // a replay what was said then.
  virtual double answer(std::string_view, double measured) { return measured; }
  virtual std::string answer(std::string_view, std::string measured) { return measured; }

  // In a replay, what `answer` will say next, for what must be known before it is measured; else nothing.
  virtual std::optional<double> foretold(std::string_view) { return std::nullopt; }

  // Why what was recorded is not whole; "" while it is.
  virtual std::string trouble() const { return ""; }

  // How the run ended on this rank; the last that is recorded.
  virtual void end(const std::string&) {}
};

// Keeps the last `capacity` happenings for the report of a fatal end.
class RingRecorder final : public Recorder {
 public:
  explicit RingRecorder(int capacity = 1024);
  ~RingRecorder() override;
  void record(const Happening& happening) override;
  std::vector<Happening> last(int count) const override;
  std::size_t peek(std::span<Happening> out) const override;

 private:
  struct Ring;
  Ring* ring_;
};

}  // namespace tutti
