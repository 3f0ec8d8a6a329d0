#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// Whether two ranks may have posted these under one sequence number.
bool matches(const CollectiveHeader& a, const CollectiveHeader& b);

// What the error says when they may not: "rank 0 posted #7 ..., rank 1 posted #7 ...".
std::string mismatch_text(int rank_a, const CollectiveHeader& a, int rank_b, const CollectiveHeader& b);

// The collectives that one rank of a group has posted: numbers them and remembers the last ones.
class HeaderLog {
 public:
  static constexpr int kKept = 64;

  // The header of the next collective; a long label is cut.
  CollectiveHeader next(CollectiveKind kind, uint64_t bytes, const std::string& label);

  // The last `count` (at most kKept), oldest first.
  std::vector<CollectiveHeader> last(int count) const;

  // Null when it is not yet posted, or forgotten.
  const CollectiveHeader* find(uint64_t sequence) const;

 private:
  uint64_t next_ = 0;
  CollectiveHeader ring_[kKept];
};

}  // namespace tutti
