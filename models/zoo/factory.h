#pragma once

#include <memory>

#include "models/model.h"
#include "recipe/setting.h"
#include "tensors/tree.h"

namespace tutti {

// The model that [model] names, built on the meta device to fit the samples: what the recipe leaves out is
// taken from them, and where the two disagree a UserError names the key and both values.
std::shared_ptr<Model> make_model(const Setting& section, const SampleSpec& samples);

}  // namespace tutti
