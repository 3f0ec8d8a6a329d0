#pragma once

#include <functional>

#include "runtime/time_point.h"

namespace tutti {

// Does at the end of a process what may never return, such as writing to a dead disk: whether it was done
// within `limit`. Else its thread goes on, so `work` refers to nothing that may go before the process.
bool done_within(Nanoseconds limit, std::function<void()> work);

}  // namespace tutti
