#include "collectives/device/header_check.h"

#include <ATen/ops/empty.h>

#include <cstring>

#include "collectives/header_log.h"

namespace tutti {
namespace {

constexpr int64_t kBytes = sizeof(CollectiveHeader);

}  // namespace

HeaderCheck::HeaderCheck(Group& control, const CollectiveHeader& header)
    : control_(control),
      header_(header),
      mine_(at::empty({kBytes}, at::kByte)),
      all_(at::empty({kBytes * control.size()}, at::kByte)) {
  std::memcpy(mine_.mutable_data_ptr(), &header_, sizeof header_);
  work_ = control.all_gather(mine_, all_, header.label);
}

bool HeaderCheck::done() {
  if (work_ == nullptr) return true;
  if (!work_->done()) return false;
  work_.reset();
  for (int rank = 0; rank < control_.size(); ++rank) {
    CollectiveHeader theirs;
    std::memcpy(&theirs, all_.const_data_ptr<uint8_t>() + kBytes * rank, sizeof theirs);
    if (matches(header_, theirs)) continue;
    const int self = control_.world_rank(control_.rank());
    throw CollectiveError(mismatch_text(self, header_, control_.world_rank(rank), theirs));
  }
  return true;
}

}  // namespace tutti
