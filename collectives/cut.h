#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace tutti {

// Elements [begin, end) of a flat tensor.
struct ElementRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// `count` neighbouring elements of the whole which are neighbours in a part too.
struct CutRun {
  int64_t whole = 0;  // the first element's index in the whole
  int64_t part = 0;   // and in the part
  int64_t count = 0;
};

class Cut;
using CutPtr = std::shared_ptr<const Cut>;

// How a flat tensor, the whole, is cut over the ranks of a group. A rank's part is dense. Parts may differ in
// size, and be empty. The whole may have elements that belong to no part.
class Cut {
 public:
  // Rank r's part has the elements of parts[r], range by range. An element belongs to at most one rank.
  // Ranges need no alignment; copies and sums of ranges at multiples of 64 bytes are fastest.
  explicit Cut(const std::vector<std::vector<ElementRange>>& parts);

  // Equal parts, one behind the other in rank order.
  static CutPtr even(int ranks, int64_t part_size);

  int ranks() const { return static_cast<int>(first_run_.size()) - 1; }
  int64_t size() const { return begins_.back(); }  // elements of all parts
  int64_t extent() const { return extent_; }       // a whole has at least so many elements
  int64_t part_size(int rank) const { return begins_[rank + 1] - begins_[rank]; }
  int64_t largest_part() const;
  // Number of elements in the parts of all lower ranks.
  int64_t packed_begin(int rank) const { return begins_[rank]; }
  bool is_packed() const;  // the parts lie in the whole one behind the other, in rank order
  bool is_even() const;    // likewise, and are equally large

  // Differs, in practice, if the cuts differ.
  uint64_t hash() const { return hash_; }

  // A rank's part, in its order, in as few runs as possible.
  std::span<const CutRun> runs(int rank) const;
  // Elements [first, first + count) of the rank's part; CutRun::part counts from `first`.
  std::vector<CutRun> runs(int rank, int64_t first, int64_t count) const;

 private:
  void append(const ElementRange& range);
  void check_disjoint() const;

  std::vector<CutRun> runs_;            // rank by rank
  std::vector<std::size_t> first_run_;  // of each rank, and the end
  std::vector<int64_t> begins_;         // packed_begin of each rank, and the end
  int64_t extent_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace tutti
