#pragma once

#include "recipe/catalog.h"

namespace tutti {

// The catalog of [[loggers]].
Catalog logger_catalog();

}  // namespace tutti
