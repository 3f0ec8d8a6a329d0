#pragma once

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

bool counts_tokens(const Model& model, const SampleSpec& samples);

// Throws UserError where the recipe (resolved) tells a time in tokens and the model counts none in such
// samples: it would never come.
void require_tokens(const Setting& recipe, const Model& model, const SampleSpec& samples);

}  // namespace tutti
