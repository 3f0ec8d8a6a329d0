#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/clock.h"

namespace tutti {

// Lets one thread sleep until another wakes it. Before sleeping it may spin (yielding the core) for up to
// `spin`, but only while its recent waits were so short that spinning pays: an idle thread always sleeps.
class Parker {
 public:
  // Returns after an unpark (one that came before is not lost), at `until`, or early.
  void park(TimePoint until, Nanoseconds spin);
  void unpark();

 private:
  bool spin_until(TimePoint start, TimePoint end);
  void sleep_until(TimePoint until);

  enum Token : uint32_t { kEmpty, kParked, kNotified };
  std::atomic<uint32_t> token_{kEmpty};
  Nanoseconds usual_wait_{0};  // a moving average; the parking thread's own
};

}  // namespace tutti
