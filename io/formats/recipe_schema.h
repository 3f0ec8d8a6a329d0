#pragma once

#include <span>
#include <string>

#include "recipe/catalog.h"

namespace tutti {

// The JSON Schema (draft 7) of recipes with these sections: types, bounds, choices, defaults and texts of all
// keys; which keys each kind has, by if and then. Refused keys and kinds are left out.
std::string recipe_schema(std::span<const Catalog> catalogs);

}  // namespace tutti
