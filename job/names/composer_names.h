#pragma once

#include <vector>

#include "recipe/foreign_name.h"

namespace tutti {

using ComposerName = ForeignName;

// All names that the catalogs do not have.
const std::vector<ComposerName>& composer_names();

}  // namespace tutti
