#pragma once

#include <span>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"
#include "recipe/stages.h"

namespace tutti {

// All sections of a recipe, in the order of a resolved recipe. Needs no libtorch.
std::span<const Catalog> recipe_catalogs();

// Resolves all keys, after translating [deepspeed] into tutti's own keys; of a recipe with stages, the chosen
// one (recipe/stages.h). Throws UserError.
Setting resolve_recipe(const Setting& given);

// Resolves the recipes of all stages; without [[stages]] the only one. Throws UserErrors with the mistakes of
// all.
std::vector<Stage> resolve_stages(const Setting& written);

// The catalogs of `list` and `explain`, also catalogs that are not sections.
std::span<const Catalog> all_catalogs();

}  // namespace tutti
