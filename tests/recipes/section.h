#pragma once

#include <string>

#include "runtime/catalog.h"
#include "runtime/setting.h"

namespace tutti {

// The section of `catalog` for a recipe that names the kind and gives only what it must: every other key has
// its default.
Setting smallest_section(const Catalog& catalog, const std::string& kind);

}  // namespace tutti
