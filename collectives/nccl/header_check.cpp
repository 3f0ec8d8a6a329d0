#include "collectives/nccl/header_check.h"

#include <ATen/ops/empty.h>

#include "collectives/header_log.h"

namespace tutti {
namespace {

constexpr int64_t kFields = 4;

void write_fields(const CollectiveHeader& header, int64_t* out) {
  out[0] = static_cast<int64_t>(header.sequence);
  out[1] = static_cast<int64_t>(header.kind);
  out[2] = static_cast<int64_t>(header.bytes);
  out[3] = static_cast<int64_t>(header.cut);
}

CollectiveHeader read_fields(const int64_t* in) {
  return {.sequence = static_cast<uint64_t>(in[0]),
          .kind = static_cast<CollectiveKind>(in[1]),
          .bytes = static_cast<uint64_t>(in[2]),
          .cut = static_cast<uint64_t>(in[3])};
}

}  // namespace

HeaderCheck::HeaderCheck(Group& control, const CollectiveHeader& header)
    : control_(control),
      header_(header),
      mine_(at::empty({kFields}, at::kLong)),
      all_(at::empty({kFields * control.size()}, at::kLong)) {
  write_fields(header, mine_.mutable_data_ptr<int64_t>());
  work_ = control.all_gather(mine_, all_, header.label);
}

bool HeaderCheck::done() {
  if (work_ == nullptr) return true;
  if (!work_->done()) return false;
  work_.reset();
  for (int rank = 0; rank < control_.size(); ++rank) {
    const CollectiveHeader theirs = read_fields(all_.const_data_ptr<int64_t>() + kFields * rank);
    if (matches(header_, theirs)) continue;
    const int self = control_.world_rank(control_.rank());
    throw CollectiveError(mismatch_text(self, header_, control_.world_rank(rank), theirs));
  }
  return true;
}

}  // namespace tutti
