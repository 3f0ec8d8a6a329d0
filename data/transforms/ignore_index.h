#pragma once

#include "data/transforms/transform.h"
#include "tensors/ignored_target.h"

namespace tutti {

// Replaces targets ("target", "labels") equal to `index` by kIgnoredTarget. Integers become int64; others
// are refused.
TransformPtr ignore_index_transform(int64_t index);

}  // namespace tutti
