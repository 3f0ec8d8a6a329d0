#pragma once

#include <memory>

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// Builds the model of [model] on the meta device. Sizes absent from the recipe come from the samples; a
// UserError names the key and both values if recipe and data disagree, but for the length of sequences.
std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples);

// Throws UserError if the samples' token sequences ("input_ids" or "input") are longer than the model's
// positions allow. Asked once algorithms have changed the model: they may lift the limit.
void require_positions(const Setting& section, Layer& model, const SampleSpec& samples);

}  // namespace tutti
