#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [[loggers]]
Catalog logger_catalog();

}  // namespace tutti
