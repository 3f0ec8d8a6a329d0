#pragma once

#include <vector>

#include "models/layers/layer.h"

namespace tutti {

// For each of parameters(root): true if the model uses it once, in an operation that autocast runs in 16 bits
// (Linear, Conv1D, Conv2d, each in one slot, and without a rule for their weight). Gathered in 16 bits, it
// gives the same outputs and gradients, and autocast makes no copy of it.
std::vector<bool> cast_by_autocast(Layer& root);

}  // namespace tutti
