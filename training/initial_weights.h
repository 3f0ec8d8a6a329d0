#pragma once

#include <string>

#include "recipe/setting.h"
#include "training/trainee.h"

namespace tutti {

// Tensors of the model that may be missing in a file of weights: those named by weights_strict and
// weights_ignore, or none.
enum class Lacking { kAsAllowed, kNothing };

// Reads a file of weights (io/weights/weights.h) into a trainee's model, as a [model] section says
// (WeightsOptions): by the names after or before surgery, or by names of other programs
// (models/weight_names.h). Of a model before surgery, tensors that surgery added may be missing, and removed
// tensors are ignored. GPT-2's projections may be stored as linear layers' weights. A trainee with a share
// reads its rows alone. Returns a line about missing and unused tensors, or "". Throws UserError with the key
// `weights`.
std::string load_initial_weights(Trainee& trainee, const Setting& model, const Setting& weights,
                                 Lacking lacking = Lacking::kAsAllowed);

}  // namespace tutti
