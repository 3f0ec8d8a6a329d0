#pragma once

#include "runtime/catalog.h"

namespace tutti {

// [[algorithms]].
Catalog algorithm_catalog();

}  // namespace tutti
