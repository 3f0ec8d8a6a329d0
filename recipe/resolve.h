#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// Where a table of the recipe comes from.
struct SectionOrigin {
  std::filesystem::path folder;           // base of relative paths
  bool missing = false;                   // the recipe does not have the section
  std::vector<std::string> foreign = {};  // members that belong to other catalogs
};

// Resolves one table of the recipe, as `resolve` does. Throws UserError.
Setting resolve_section(const Catalog& catalog, const Setting& given, const SectionOrigin& origin);

// Resolves a recipe: all sections and keys of the catalogs, in their order, with their main names and
// defaults; absent optional values are none. Relative paths become absolute, from the recipe's folder
// (`recipe.position.file`). Resolving twice changes nothing.
//
// Throws UserError at the first unknown section, kind or key (suggests the nearest name), wrong type, key
// given under two names, or missing required key. A value from `--set` removes values of the file that it
// excludes.
Setting resolve(const Setting& recipe, std::span<const Catalog> catalogs);

}  // namespace tutti
