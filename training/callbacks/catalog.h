#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [[callbacks]]
Catalog callback_catalog();

}  // namespace tutti
