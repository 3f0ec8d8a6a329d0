#pragma once

#include <string>

#include "recipe/setting.h"
#include "training/trainee.h"

namespace tutti {

// What of the model may be missing in a file of weights: what weights_strict and weights_ignore allow, or
// nothing.
enum class Lacking { kAsAllowed, kNothing };

// Reads a file of weights (io/weights/weights.h) into a trainee's model, as a [model] section says
// (WeightsOptions): by the names after or before surgery, or by names of other programs
// (models/weight_names.h). Of a model before surgery, tensors that surgery added may be missing, and removed
// ones are ignored. GPT-2's projections may be stored as those of linear layers. A trainee with a share reads
// its rows alone. Returns what was not found in the file or not used of it, in a line; "" if nothing. Throws
// UserError with the key `weights`.
std::string load_initial_weights(Trainee& trainee, const Setting& model, const Setting& weights,
                                 Lacking lacking = Lacking::kAsAllowed);

}  // namespace tutti
