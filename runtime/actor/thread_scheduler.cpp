#include "runtime/actor/thread_scheduler.h"

#include <sched.h>
#include <sys/prctl.h>

#include "runtime/actor/control_block.h"

namespace tutti {
namespace {

size_t cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

}  // namespace

TimePoint ThreadScheduler::now() const { return std::chrono::steady_clock::now(); }

void ThreadScheduler::park(ControlBlock& self, TimePoint until) {
  if (until <= now()) {
    sched_yield();
  } else {
    self.parker.park(until, spin_);
  }
}

void ThreadScheduler::unpark(ControlBlock& block) { block.parker.unpark(); }

// The kernel rounds sleeps up by 50 us unless disabled.
void ThreadScheduler::enter(ControlBlock&) { prctl(PR_SET_TIMERSLACK, 1); }

void ThreadScheduler::begin() {
  if (cores() < blocks_.size()) spin_ = Nanoseconds(0);
}

}  // namespace tutti
