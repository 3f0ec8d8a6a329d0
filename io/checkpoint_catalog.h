#pragma once

#include "runtime/catalog.h"

namespace tutti {

// [checkpoint]
Catalog checkpoint_catalog();

}  // namespace tutti
