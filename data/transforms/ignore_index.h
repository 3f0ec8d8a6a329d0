#pragma once

#include "data/transforms/transform.h"

namespace tutti {

// The target that losses and metrics leave out, as PyTorch's.
inline constexpr int64_t kIgnoredTarget = -100;

// Replaces targets ("target", "labels") equal to `index` by kIgnoredTarget. Integers become int64; others
// are refused.
TransformPtr ignore_index_transform(int64_t index);

}  // namespace tutti
