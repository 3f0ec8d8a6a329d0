#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/foreign_name.h"
#include "recipe/setting.h"

namespace tutti {

// The origin of a table of the recipe.
struct SectionOrigin {
  std::filesystem::path folder;           // base of relative paths
  bool missing = false;                   // the recipe does not have the section
  std::vector<std::string> foreign = {};  // members that belong to other catalogs
};

// Resolves one table of the recipe, as `resolve` does.
Setting resolve_section(const Catalog& catalog, const Setting& given, const SectionOrigin& origin);

// Resolves a recipe: all sections and keys of the catalogs, in their order, with their main names and
// defaults; absent optional values are none. Relative paths become absolute, from the recipe's folder
// (`recipe.position.file`). Resolving twice changes nothing.
//
// Throws UserErrors with all unknown sections, kinds and keys (says which name is nearest, or where the key
// belongs), wrong types, keys given under two names, and missing required keys. `foreign`: names of other
// libraries that users may write. A value from `--set` removes excluded values of the file.
Setting resolve(const Setting& recipe, std::span<const Catalog> catalogs,
                std::span<const ForeignName> foreign = {});

}  // namespace tutti
