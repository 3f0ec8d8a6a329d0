#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/time_point.h"

namespace tutti {

// Something that happened on a rank: who, what, and a number or two that tell it apart (step, bucket, bytes).
struct Happening {
  TimePoint time;
  std::string_view actor;  // static strings: recording does not allocate
  std::string_view what;
  int64_t step = -1;
  int64_t detail = 0;
};

// Where actors report what they do. Thread-safe and cheap enough for every message.
class Recorder {
 public:
  virtual ~Recorder() = default;
  virtual void record(const Happening& happening) = 0;
  virtual std::vector<Happening> last(int count) const = 0;  // oldest first
};

// Keeps the last `capacity` happenings for the report of a fatal end.
class RingRecorder final : public Recorder {
 public:
  explicit RingRecorder(int capacity = 1024);
  ~RingRecorder() override;
  void record(const Happening& happening) override;
  std::vector<Happening> last(int count) const override;

 private:
  struct Ring;
  Ring* ring_;
};

}  // namespace tutti
