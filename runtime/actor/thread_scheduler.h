#pragma once

#include "runtime/actor/scheduler.h"

namespace tutti {

// The scheduler for production: actors run concurrently, idle actors sleep.
class ThreadScheduler final : public Scheduler {
 public:
  // `spin`: how long an actor spins before it sleeps, if there is a core for each actor and waits are short.
  explicit ThreadScheduler(Nanoseconds spin = kDefaultSpin) : spin_(spin) {}
  static constexpr Nanoseconds kDefaultSpin = std::chrono::microseconds(50);

  TimePoint now() const override;

 protected:
  void park(ControlBlock& self, TimePoint until) override;
  void unpark(ControlBlock& block) override;
  void enter(ControlBlock& block) override;
  void begin() override;
  bool abandons() const override { return true; }

 private:
  Nanoseconds spin_;
};

}  // namespace tutti
