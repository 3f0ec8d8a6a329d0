#pragma once

#include <filesystem>
#include <span>
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

// The recipe as it will run: every section and key of the catalogs, in their order, under its main name and
// with its default filled in; what may be absent and is, is none. Paths are absolute; written relative, they
// are meant relative to the recipe's folder (`recipe.position.file`). Resolving twice changes nothing.
//
// Throws UserError at the first unknown section, kind or key (suggesting the nearest name), value of another
// type, key given under two names, or required key that is missing. A value from `--set` wins over one of the
// file's that it excludes.
Setting resolve(const Setting& recipe, std::span<const Catalog> catalogs);

}  // namespace tutti
