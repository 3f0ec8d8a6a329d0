#pragma once

#include <functional>
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

}  // namespace tutti
