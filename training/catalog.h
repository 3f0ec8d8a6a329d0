#pragma once

#include "recipe/catalog.h"

namespace tutti {

// The catalogs of the top level, [train], [precision] and [compat].
Catalog run_catalog();
Catalog train_catalog();
Catalog precision_catalog();
Catalog compat_catalog();

}  // namespace tutti
