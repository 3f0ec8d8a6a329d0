#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <span>

#include "collectives/rank_tree.h"

namespace tutti {

// What some ranks add to an ordered sum: one rank's elements, or the sum of a whole subtree.
struct Summand {
  RankRange ranks;
  const void* data = nullptr;
};

// float32, float64, bfloat16, float16, int32, int64.
bool can_sum(c10::ScalarType dtype);

// The ordered sum (collectives/group.h) of `summands`, `count` elements each, written to every output. Gives
// whether it is finite throughout, which costs next to nothing while a sum is still in the cache. The
// summands are in rank order and tile a subtree, each being a subtree itself. An output may be a summand's
// own memory, but may not overlap one otherwise. 16-bit floats are added in float32 and rounded at every
// node; integers wrap.
bool ordered_sum(c10::ScalarType dtype, std::span<const Summand> summands, std::span<void* const> outputs,
                 int64_t count);

}  // namespace tutti
