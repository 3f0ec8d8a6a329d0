#include "runtime/clock.h"

namespace tutti {

TimePoint SystemClock::now() const { return std::chrono::steady_clock::now(); }

int64_t SystemClock::unix_ms() const {
  using namespace std::chrono;
  return duration_cast<std::chrono::milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace tutti
