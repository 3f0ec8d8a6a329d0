#pragma once

#include <span>

#include "runtime/catalog.h"

namespace tutti {

// Every section that a recipe may have, in the order in which a resolved recipe lists them. Needs no
// libtorch.
std::span<const Catalog> recipe_catalogs();

// What `list` and `explain` know besides: names that are not a section's.
std::span<const Catalog> all_catalogs();

}  // namespace tutti
