#pragma once

#include <cstdint>

#include "runtime/time_point.h"

namespace tutti {

// What time it is. Production reads the machine's clocks; the simulator makes its own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual int64_t unix_ms() const = 0;  // wall-clock, for logs and file names only
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override;
  int64_t unix_ms() const override;
};

}  // namespace tutti
