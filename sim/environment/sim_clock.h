#pragma once

#include "runtime/actor/scheduler.h"
#include "runtime/clock.h"

namespace tutti {

// A scheduler's time as a Clock. Wall-clock time is counted from a fixed moment, so that simulated logs are
// alike.
class SimClock final : public Clock {
 public:
  static constexpr int64_t kStartUnixMs = 1'700'000'000'000;

  explicit SimClock(const Scheduler& scheduler) : scheduler_(scheduler) {}
  TimePoint now() const override { return scheduler_.now(); }
  int64_t unix_ms() const override {
    return kStartUnixMs + now().time_since_epoch() / std::chrono::milliseconds(1);
  }

 private:
  const Scheduler& scheduler_;
};

}  // namespace tutti
