#pragma once

#include "recipe/catalog.h"

namespace tutti {

// The catalog of [model].
Catalog model_catalog();

}  // namespace tutti
