#pragma once

#include "data/transforms/transform.h"
#include "tensors/ignored_target.h"

namespace tutti {

// Replaces targets ("target", "labels") equal to `index` by kIgnoredTarget. Integers become int64; others
// are refused.
TransformPtr ignore_index_transform(int64_t index);

// Numbers integer targets from 0 that the data number from `first`; those equal to kIgnoredTarget stay.
// Throws UserError for one between.
TransformPtr first_class_transform(int64_t first);

}  // namespace tutti
