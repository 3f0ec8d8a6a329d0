#pragma once

#include <ATen/core/Tensor.h>

#include "collectives/group.h"

namespace tutti {

// Compares what the ranks posted, over a control group beside the data: NCCL itself would hang.
class HeaderCheck {
 public:
  HeaderCheck(Group& control, const CollectiveHeader& header);

  // Whether all ranks are known to have posted the same. Never blocks. Throws CollectiveError naming both.
  bool done();

 private:
  Group& control_;
  CollectiveHeader header_;
  at::Tensor mine_;  // sequence, kind, bytes; int64
  at::Tensor all_;   // the same of every rank
  WorkPtr work_;     // null once compared
};

}  // namespace tutti
