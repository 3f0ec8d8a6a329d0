#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [[algorithms]].
Catalog algorithm_catalog();

}  // namespace tutti
