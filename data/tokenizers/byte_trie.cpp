#include "data/tokenizers/byte_trie.h"

#include <algorithm>

namespace tutti {
namespace {

// Entries that begin with the same `depth` bytes, those of a node.
struct Range {
  uint32_t node;
  std::size_t first, last, depth;
};

}  // namespace

ByteTrie::ByteTrie(std::vector<Entry> entries) : nodes_(1), roots_(256, kNone) {
  std::stable_sort(entries.begin(), entries.end(),
                   [](const Entry& a, const Entry& b) { return a.first < b.first; });
  std::vector<Range> pending{{0, 0, entries.size(), 0}};
  for (std::size_t next = 0; next < pending.size(); ++next) {
    auto [node, first, last, depth] = pending[next];
    for (; first < last && entries[first].first.size() == depth; ++first)
      if (depth > 0) nodes_[node].number = entries[first].second;
    nodes_[node].first_child = static_cast<uint32_t>(nodes_.size());
    while (first < last) {
      const char byte = entries[first].first[depth];
      std::size_t end = first;
      while (end < last && entries[end].first[depth] == byte) ++end;
      pending.push_back({static_cast<uint32_t>(nodes_.size()), first, end, depth + 1});
      nodes_.push_back({.byte = static_cast<unsigned char>(byte)});
      ++nodes_[node].children;
      first = end;
    }
  }
  for (uint32_t i = 0; i < nodes_[0].children; ++i)
    roots_[nodes_[nodes_[0].first_child + i].byte] = nodes_[0].first_child + i;
}

}  // namespace tutti
