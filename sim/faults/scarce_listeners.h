#pragma once

#include <functional>
#include <string>

#include "job/job.h"

namespace tutti {

// The one that needs to be first.
inline constexpr const char* kFirstAlgorithm = "ScarceBefore";

// Whether a rank's listener, in this phase of a fault plan (kAlgorithmPhase, kCallbackPhase), has no memory
// now.
using Scarcity = std::function<bool(const State& state, const std::string& phase)>;

// Adds listeners to each rank that do nothing but ask at every event from FIT_START on that is outside of
// forward and backward, and run out of memory where there is none: an algorithm that needs to be first, one
// that needs to be last, and a callback.
Listeners with_scarce_listeners(Listeners listeners, Scarcity scarcity);

}  // namespace tutti
