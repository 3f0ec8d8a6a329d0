#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// What a section's catalog does not say about one table of the recipe.
struct SectionOrigin {
  std::filesystem::path folder;           // what relative paths are relative to
  bool missing = false;                   // the table is empty because the section was not written
  std::vector<std::string> foreign = {};  // members that belong to other catalogs
};

// One table of the recipe against its catalog, as `resolve` does it. Throws UserError.
Setting resolve_section(const Catalog& catalog, const Setting& given, const SectionOrigin& origin);

}  // namespace tutti
