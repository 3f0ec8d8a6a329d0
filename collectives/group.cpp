#include "collectives/group.h"

namespace tutti {

const char* name(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllReduce:
      return "all_reduce";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kAllGather:
      return "all_gather";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kBarrier:
      return "barrier";
  }
  return "unknown collective";
}

std::string CollectiveHeader::text() const {
  const std::string amount = " of " + std::to_string(bytes) + " bytes";
  return "#" + std::to_string(sequence) + " " + name(kind) + amount + " (" + label + ")";
}

LostRankError::LostRankError(int rank, const CollectiveHeader& waited)
    : CollectiveError("rank " + std::to_string(rank) + " is gone: its process ended while " + waited.text() +
                      " waited"),
      rank_(rank) {}

}  // namespace tutti
