#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [model]
Catalog model_catalog();

}  // namespace tutti
