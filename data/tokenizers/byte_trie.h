#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tutti {

// A set of numbered texts. One walk over a text's bytes finds all texts of the set with which that text
// begins. Immutable.
class ByteTrie {
 public:
  using Entry = std::pair<std::string, uint32_t>;
  static constexpr uint32_t kNone = 0xffffffff;

  ByteTrie() : ByteTrie(std::vector<Entry>()) {}
  // Of entries with equal texts the last one counts. Empty texts are left out.
  explicit ByteTrie(std::vector<Entry> entries);

  bool empty() const { return nodes_.size() == 1; }

  // Calls use(bytes, number) for each text of the set with which `text` begins, the shortest first.
  template <class Use>
  void for_each_prefix(std::string_view text, Use use) const {
    uint32_t node = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      node = child(node, static_cast<unsigned char>(text[i]));
      if (node == kNone) return;
      if (nodes_[node].number != kNone) use(i + 1, nodes_[node].number);
    }
  }

  // Bytes and number of the longest text of the set with which `text` begins; 0 bytes if there is none.
  std::pair<std::size_t, uint32_t> longest(std::string_view text) const {
    std::pair<std::size_t, uint32_t> longest{0, kNone};
    for_each_prefix(text, [&](std::size_t bytes, uint32_t number) { longest = {bytes, number}; });
    return longest;
  }

 private:
  // The children of a node stand side by side, by their bytes.
  struct Node {
    uint32_t first_child = 0;
    uint16_t children = 0;
    unsigned char byte = 0;
    uint32_t number = kNone;
  };

  uint32_t child(uint32_t node, unsigned char byte) const {
    if (node == 0) return roots_[byte];
    const Node& parent = nodes_[node];
    uint32_t low = parent.first_child, high = low + parent.children;
    while (low < high) {
      const uint32_t middle = (low + high) / 2;
      if (nodes_[middle].byte < byte)
        low = middle + 1;
      else
        high = middle;
    }
    const bool is_child = low < parent.first_child + parent.children && nodes_[low].byte == byte;
    return is_child ? low : kNone;
  }

  std::vector<Node> nodes_;
  std::vector<uint32_t> roots_;  // by the first byte
};

}  // namespace tutti
