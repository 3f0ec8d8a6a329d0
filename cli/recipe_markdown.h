#pragma once

#include <span>
#include <string>

#include "recipe/catalog.h"

namespace tutti {

// The text of docs/recipe.md: every section, kind and key.
std::string recipe_markdown(std::span<const Catalog> catalogs);

// The text of docs/algorithms.md: description, use and effect of each algorithm, a call in C++ and an entry
// of a recipe.
std::string algorithms_markdown(const Catalog& algorithms);

}  // namespace tutti
