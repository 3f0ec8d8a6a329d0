#pragma once

#include <memory>

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// Builds the model of [model] on the meta device. Sizes absent from the recipe come from the samples; a
// UserError names the key and both values if recipe and data disagree.
std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples);

}  // namespace tutti
