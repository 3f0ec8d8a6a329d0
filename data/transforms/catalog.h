#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [[data.train.transforms]], [[data.eval.transforms]] and [[evaluators.transforms]]
Catalog transform_catalog();

}  // namespace tutti
