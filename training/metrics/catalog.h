#pragma once

#include "recipe/catalog.h"

namespace tutti {

// The metrics with their keys; not a section of the recipe. Shown by `tutti list metrics`.
Catalog metric_catalog();

}  // namespace tutti
