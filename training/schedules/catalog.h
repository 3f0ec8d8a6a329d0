#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [scheduler]
Catalog scheduler_catalog();

}  // namespace tutti
