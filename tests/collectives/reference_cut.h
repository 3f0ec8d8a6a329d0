#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "collectives/cut.h"

namespace tutti {

using Parts = std::vector<std::vector<ElementRange>>;  // by rank

// Gives `count` elements away in runs, in no order, and leaves some out. The part of one rank is empty if
// salt is odd. The same in every process.
Parts random_parts(int ranks, int64_t count, uint64_t salt);

// A copy of the ranges, one behind the other.
at::Tensor part_of(const at::Tensor& whole, const std::vector<ElementRange>& ranges);

// A copy of `whole`, but with `other`'s elements where no part is.
at::Tensor outside_of(const Parts& parts, const at::Tensor& other, const at::Tensor& whole);

}  // namespace tutti
