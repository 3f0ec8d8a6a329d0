#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace tutti {

// Ranks [begin, end).
struct RankRange {
  int begin = 0;
  int end = 0;

  int count() const { return end - begin; }
  friend bool operator==(const RankRange&, const RankRange&) = default;
};

// The first rank of the second half of `range` in the ordered sum (collectives/group.h). At least two ranks.
int split_point(RankRange range);

// The largest subtrees of the ordered sum over `tree` in which `member` is true for all ranks, in rank order.
// A host with these ranks can compute these sums alone without changing the bits of the result.
std::vector<RankRange> subtrees_within(RankRange tree, const std::function<bool(int)>& member);

// An input of an ordered sum: the elements of one rank, or the sum of a subtree.
struct Summand {
  RankRange ranks;
  const void* data = nullptr;
};

// float32, float64, bfloat16, float16, int32, int64.
bool can_sum(c10::ScalarType dtype);

// Writes the ordered sum (collectives/group.h) of `summands`, `count` elements each, to every output. True if
// all elements of the sum are finite. The summands are in rank order, each is a subtree, and all summands
// tile a subtree. An output may be the memory of a summand, but not overlap a summand in part. 16-bit floats
// are added in float32 and rounded at every node; integers wrap.
bool ordered_sum(c10::ScalarType dtype, std::span<const Summand> summands, std::span<void* const> outputs,
                 int64_t count);

}  // namespace tutti
