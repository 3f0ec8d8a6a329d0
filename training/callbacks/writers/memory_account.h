#pragma once

#include <string>

#include "training/state.h"

namespace tutti {

// What holds this rank's memory now, a line each: parameters, gradients, buffers, the optimizer's state, the
// rest, and what was taken at most within the step. In bytes, as the meter counts them.
std::string memory_account(const State& state);

}  // namespace tutti
