#pragma once

#include "runtime/catalog.h"

namespace tutti {

// [collectives]
Catalog collectives_catalog();

}  // namespace tutti
