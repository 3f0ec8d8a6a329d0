#include "collectives/group.h"

#include "collectives/ordered_sum.h"
#include "runtime/error.h"

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
    : CollectiveError(
          "rank " + std::to_string(rank) + " is gone: its process ended while " + waited.text() + " waited",
          EndKind::kLostRank),
      rank_(rank) {}

void check_flat(const at::Tensor& tensor) {
  TUTTI_ASSERT(tensor.defined() && tensor.dim() == 1 && tensor.is_contiguous(),
               "collectives take flat tensors");
}

void check_summable(const at::Tensor& tensor) {
  check_flat(tensor);
  TUTTI_ASSERT(can_sum(tensor.scalar_type()),
               std::string("no sums of ") + c10::toString(tensor.scalar_type()));
}

void check_parts(const at::Tensor& part, const at::Tensor& whole, int parts) {
  check_flat(part);
  check_flat(whole);
  TUTTI_ASSERT(part.scalar_type() == whole.scalar_type(), "part and whole differ in dtype");
  TUTTI_ASSERT(part.numel() * parts == whole.numel(), "the whole must be as large as all parts together");
}

}  // namespace tutti
