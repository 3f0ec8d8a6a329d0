#pragma once

#include "job/checkpoint_options.h"
#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// True if the model counts tokens in such samples.
bool counts_tokens(const Model& model, const SampleSpec& samples);

// Throws UserError if the resolved recipe has a time in tokens, but the model counts no tokens.
void require_tokens(const Setting& recipe, const Model& model, const SampleSpec& samples);

// Throws UserError with [checkpoint] save_filename if steps may have the same name, and the best checkpoints
// are kept: a later checkpoint would replace the best of the same name. `settings`: of the recipe.
void require_names_of_steps(const CheckpointSettings& settings, const Model& model,
                            const SampleSpec& samples);

}  // namespace tutti
