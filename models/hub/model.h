#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "recipe/setting.h"
#include "tensors/param_view.h"

namespace tutti {

using NamedShapes = std::map<std::string, Shape>;

// Classes of a classifier with these tensors; 0 for other models.
int64_t hub_classes(const NamedShapes& tensors);

// Throws UserError with the key unless the tensors have the names and shapes of transformers' model for the
// resolved [model] section, of one of hub_config's kinds.
void require_hub_model(const Setting& key, const Setting& section, const NamedShapes& tensors);

}  // namespace tutti
