#pragma once

#include "recipe/catalog.h"

namespace tutti {

// What models measure and the log names, each with its keys; not a section of the recipe, shown by `tutti
// list metrics`.
Catalog metric_catalog();

}  // namespace tutti
