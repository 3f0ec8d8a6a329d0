#pragma once

#include "recipe/catalog.h"

namespace tutti {

// The catalog of [[callbacks]].
Catalog callback_catalog();

}  // namespace tutti
