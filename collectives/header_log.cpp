#include "collectives/header_log.h"

#include <algorithm>

namespace tutti {

bool matches(const CollectiveHeader& a, const CollectiveHeader& b) {
  return a.sequence == b.sequence && a.kind == b.kind && a.bytes == b.bytes && a.cut == b.cut;
}

int64_t shape_of(const CollectiveHeader& header) {
  const uint64_t shape = (header.bytes * 8 + static_cast<uint64_t>(header.kind)) ^ header.cut;
  return static_cast<int64_t>(shape & INT64_MAX);
}

std::string mismatch_text(int rank_a, const CollectiveHeader& a, int rank_b, const CollectiveHeader& b) {
  const bool only_cuts_differ = a.sequence == b.sequence && a.kind == b.kind && a.bytes == b.bytes;
  return "ranks posted different collectives: rank " + std::to_string(rank_a) + " posted " + a.text() +
         ", rank " + std::to_string(rank_b) + " posted " + b.text() +
         (only_cuts_differ ? ", cut otherwise" : "");
}

CollectiveHeader HeaderLog::next(CollectiveKind kind, uint64_t bytes, const std::string& label,
                                 uint64_t cut) {
  CollectiveHeader& header = ring_[next_ % kKept];
  header = {next_++, kind, bytes, cut, {}};
  label.copy(header.label, sizeof(header.label) - 1);
  return header;
}

std::vector<CollectiveHeader> HeaderLog::last(int count) const {
  const uint64_t kept = std::min<uint64_t>({next_, kKept, static_cast<uint64_t>(std::max(count, 0))});
  std::vector<CollectiveHeader> headers;
  for (uint64_t sequence = next_ - kept; sequence < next_; ++sequence)
    headers.push_back(ring_[sequence % kKept]);
  return headers;
}

const CollectiveHeader* HeaderLog::find(uint64_t sequence) const {
  if (sequence >= next_ || sequence + kKept < next_) return nullptr;
  return &ring_[sequence % kKept];
}

}  // namespace tutti
