#pragma once

#include <cstdint>
#include <memory>

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// Builds the model of [model] on the meta device. Sizes absent from the recipe come from the samples; a
// UserError names the key and both values if recipe and data disagree, but for the length of sequences.
std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples);

// The length of the samples' token sequences ("input_ids", "input", "positive_ids" or "negative_ids") if more
// than the model's positions allow, else 0. Asked after algorithms' surgery, which may lift the limit.
int64_t overlong_sequences(Layer& model, const SampleSpec& samples);
// Throws UserError if there are any in the training data.
void require_positions(const Setting& section, Layer& model, const SampleSpec& samples);

}  // namespace tutti
