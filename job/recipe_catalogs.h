#pragma once

#include <span>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// All sections of a recipe, in the order of a resolved recipe. Needs no libtorch.
std::span<const Catalog> recipe_catalogs();

// Resolves all keys, after translating [deepspeed] into tutti's own keys. Throws UserError.
Setting resolve_recipe(const Setting& written);

// The catalogs of `list` and `explain`, also catalogs that are not sections.
std::span<const Catalog> all_catalogs();

}  // namespace tutti
