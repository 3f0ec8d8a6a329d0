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

// Where the ordered sum (collectives/group.h) splits a range of two or more ranks.
int split_point(RankRange range);

// The largest subtrees of the ordered sum over `tree` that hold only ranks of which `member` is true, in rank
// order: what a host can sum by itself without changing a bit of the result.
std::vector<RankRange> subtrees_within(RankRange tree, const std::function<bool(int)>& member);

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
