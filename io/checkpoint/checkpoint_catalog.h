#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [checkpoint]
Catalog checkpoint_catalog();

}  // namespace tutti
