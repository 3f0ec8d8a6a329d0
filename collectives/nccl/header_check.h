#pragma once

#include <ATen/core/Tensor.h>

#include "collectives/group.h"

namespace tutti {

// Compares the posted headers of all ranks over a control group. NCCL would hang if they differ.
class HeaderCheck {
 public:
  HeaderCheck(Group& control, const CollectiveHeader& header);

  // True once all ranks have posted the same header. Never blocks. Throws CollectiveError with both.
  bool done();

 private:
  Group& control_;
  CollectiveHeader header_;
  at::Tensor mine_;  // sequence, kind, bytes, cut; int64
  at::Tensor all_;   // of every rank
  WorkPtr work_;     // null once compared
};

}  // namespace tutti
