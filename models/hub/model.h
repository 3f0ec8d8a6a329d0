#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "recipe/setting.h"
#include "tensors/param_view.h"

namespace tutti {

using NamedShapes = std::map<std::string, Shape>;

// hub_folder's width of a model with these tensors: classes of a classifier, channels of a diffusion model's
// images, else 0.
int64_t hub_width(const NamedShapes& tensors);

// Throws UserError with the key unless the tensors have the names and shapes of the hub's model for the
// resolved [model] section, of one of hub_folder's kinds.
void require_hub_model(const Setting& key, const Setting& section, const NamedShapes& tensors);

}  // namespace tutti
