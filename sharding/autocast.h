#pragma once

#include <vector>

#include "models/layers/layer.h"

namespace tutti {

// For each of parameters(root): true if the model uses the parameter once, in an operation that autocast runs
// in 16 bits (Linear, Conv1D, Conv2d, each in one slot, and without a rule for their weight). Such a
// parameter may be gathered in 16 bits: outputs and gradients are the same, and autocast makes no copy.
std::vector<bool> cast_by_autocast(Layer& root);

}  // namespace tutti
