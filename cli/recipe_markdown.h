#pragma once

#include <span>
#include <string>

#include "recipe/catalog.h"

namespace tutti {

// The text of docs/recipe.md: every section, kind and key.
std::string recipe_markdown(std::span<const Catalog> catalogs);

}  // namespace tutti
