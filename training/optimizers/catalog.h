#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [optimizer]
Catalog optimizer_catalog();

}  // namespace tutti
