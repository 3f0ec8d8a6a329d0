#pragma once

#include "recipe/catalog.h"

namespace tutti {

// The catalog of [[algorithms]].
Catalog algorithm_catalog();

}  // namespace tutti
