#pragma once

#include "runtime/catalog.h"

namespace tutti {

// [model]
Catalog model_catalog();

}  // namespace tutti
