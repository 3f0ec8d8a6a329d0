#pragma once

#include <chrono>
#include <cstdint>

namespace tutti {

using Nanoseconds = std::chrono::nanoseconds;

// Monotonic time since an arbitrary start.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Nanoseconds>;

inline constexpr TimePoint kNever = TimePoint::max();

inline double seconds(Nanoseconds d) { return std::chrono::duration<double>(d).count(); }
inline double milliseconds(Nanoseconds d) { return 1e3 * seconds(d); }

// A source of time: the machine's clock in production, a simulated clock in the simulator.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  virtual int64_t unix_ms() const = 0;  // wall clock, for logs and file names only
};

class SystemClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
  int64_t unix_ms() const override {
    using namespace std::chrono;
    return duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch()).count();
  }
};

}  // namespace tutti
