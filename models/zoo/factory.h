#pragma once

#include <memory>

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// What the samples must be for the model that [model] names; where they are not, a UserError names the model,
// the array, what it is and what was expected.

// "input": float32, one value a sample at least. Gives its shape.
const Shape& value_input(const Setting& section, const SampleSpec& samples);
// "input": a sequence of int64 tokens, and "target" another of the same length. Gives the length.
int64_t token_sequence(const Setting& section, const SampleSpec& samples);
// "target": an int64 class index a sample.
void require_class_target(const Setting& section, const SampleSpec& samples);

// The model that [model] names, built on the meta device to fit the samples: what the recipe leaves out is
// taken from them, and where the two disagree a UserError names the key and both values.
std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples);

}  // namespace tutti
