#pragma once

#include <chrono>

namespace tutti {

using Nanoseconds = std::chrono::nanoseconds;

// Since an arbitrary start, monotonic: of the machine, or of the simulator's made-up clock.
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Nanoseconds>;

inline constexpr TimePoint kNever = TimePoint::max();

inline double seconds(Nanoseconds d) { return std::chrono::duration<double>(d).count(); }
inline double milliseconds(Nanoseconds d) { return 1e3 * seconds(d); }

}  // namespace tutti
