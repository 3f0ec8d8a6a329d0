#pragma once

#include <algorithm>

#include "runtime/clock.h"

namespace tutti {

// What a thread did in a stretch of time.
struct ThreadTime {
  Nanoseconds all{0};      // by the wall clock
  Nanoseconds running{0};  // on a core
  Nanoseconds ready{0};    // waited for a core; 0 if not counted by the kernel
  // Waited for other resources: for reads, the disk.
  Nanoseconds blocked() const { return std::max(Nanoseconds(0), all - running - ready); }

  ThreadTime& operator+=(const ThreadTime& other);
};

// Measures the constructing thread, from then on.
class ThreadTimer {
 public:
  ThreadTimer();
  ThreadTime elapsed() const;  // on the same thread

 private:
  ThreadTime since_;
};

}  // namespace tutti
