#pragma once

#include <span>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// Every section that a recipe may have, in the order in which a resolved recipe lists them. Needs no
// libtorch.
std::span<const Catalog> recipe_catalogs();

// A recipe as it will run: what [deepspeed] asks for said in tutti's own keys, all of them resolved. Throws
// UserError.
Setting resolve_recipe(const Setting& written);

// What `list` and `explain` know besides: names that are not a section's.
std::span<const Catalog> all_catalogs();

}  // namespace tutti
