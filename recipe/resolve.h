#pragma once

#include <span>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// The recipe as it will run: every section and key of the catalogs, in their order, under its main name and
// with its default filled in; what may be absent and is, is none. Paths are absolute; written relative, they
// are meant relative to the recipe's folder (`recipe.position.file`). Resolving twice changes nothing.
//
// Throws UserError at the first unknown section, kind or key (suggesting the nearest name), value of another
// type, key given under two names, or required key that is missing. A value from `--set` wins over one of the
// file's that it excludes.
Setting resolve(const Setting& recipe, std::span<const Catalog> catalogs);

}  // namespace tutti
