#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collectives/group.h"

namespace tutti {

// True if both headers have the same sequence number, kind, bytes and cut.
bool matches(const CollectiveHeader& a, const CollectiveHeader& b);

// A number that differs, in practice, if kind, bytes or cut differ. Never negative.
int64_t shape_of(const CollectiveHeader& header);

// The error message for headers that differ: "rank 0 posted #7 ..., rank 1 posted #7 ...".
std::string mismatch_text(int rank_a, const CollectiveHeader& a, int rank_b, const CollectiveHeader& b);

// Numbers the collectives that a rank posts to a group, and keeps the last kKept headers.
class HeaderLog {
 public:
  static constexpr int kKept = 64;

  // Makes the header of the next collective. Shortens a long label.
  CollectiveHeader next(CollectiveKind kind, uint64_t bytes, const std::string& label, uint64_t cut = 0);
  CollectiveHeader next(CollectiveKind kind, const CollectiveJob& job, const std::string& label) {
    return next(kind, job.bytes(), label, job.cut ? job.cut->hash() : 0);
  }

  // The last `count` headers (at most kKept), oldest first.
  std::vector<CollectiveHeader> last(int count) const;

  // Null if the collective is not posted yet, or no longer kept.
  const CollectiveHeader* find(uint64_t sequence) const;

 private:
  uint64_t next_ = 0;
  CollectiveHeader ring_[kKept];
};

}  // namespace tutti
