#include "collectives/rank_tree.h"

#include <bit>

#include "runtime/error.h"

namespace tutti {
namespace {

// Appends the subtrees of `node`; a node counts as one when both its halves do.
void collect(RankRange node, const std::function<bool(int)>& member, std::vector<RankRange>& out) {
  if (node.count() == 1) {
    if (member(node.begin)) out.push_back(node);
    return;
  }
  const std::size_t before = out.size();
  const int middle = split_point(node);
  collect({node.begin, middle}, member, out);
  collect({middle, node.end}, member, out);
  const bool halves = out.size() == before + 2 && out[before] == RankRange{node.begin, middle} &&
                      out[before + 1] == RankRange{middle, node.end};
  if (halves) {
    out.resize(before);
    out.push_back(node);
  }
}

}  // namespace

int split_point(RankRange range) {
  TUTTI_ASSERT(range.count() >= 2, "one rank can't be split");
  return range.begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(range.count() - 1)));
}

std::vector<RankRange> subtrees_within(RankRange tree, const std::function<bool(int)>& member) {
  std::vector<RankRange> out;
  if (tree.count() > 0) collect(tree, member, out);
  return out;
}

}  // namespace tutti
