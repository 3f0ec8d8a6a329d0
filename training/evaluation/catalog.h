#pragma once

#include "recipe/catalog.h"

namespace tutti {

// [data.eval], the evaluator "eval", and [[evaluators]], any number of further evaluators.
Catalog eval_catalog();
Catalog evaluators_catalog();

}  // namespace tutti
