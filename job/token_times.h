#pragma once

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// True if the model counts tokens in such samples.
bool counts_tokens(const Model& model, const SampleSpec& samples);

// Throws UserError if the resolved recipe has a time in tokens, but the model counts no tokens.
void require_tokens(const Setting& recipe, const Model& model, const SampleSpec& samples);

}  // namespace tutti
