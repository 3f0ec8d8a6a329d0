#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [collectives]
Catalog collectives_catalog();

}  // namespace tutti
