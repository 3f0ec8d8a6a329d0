#pragma once

#include "recipe/catalog.h"

namespace tutti {

// The catalog of [optimizer].
Catalog optimizer_catalog();

}  // namespace tutti
