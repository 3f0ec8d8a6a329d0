#pragma once

#include <ATen/core/Tensor.h>

#include "collectives/group.h"

namespace tutti {

// Compares the headers that ranks post to a group of devices, over a group of the host. Devices would wait
// for each other for ever if headers differed.
class HeaderCheck {
 public:
  // `control` must outlive this.
  HeaderCheck(Group& control, const CollectiveHeader& header);

  // True once all ranks have posted the same header. Never blocks. Throws CollectiveError with two differing
  // headers, or if a rank is lost.
  bool done();

 private:
  Group& control_;
  CollectiveHeader header_;
  at::Tensor mine_, all_;  // uint8: this rank's header, and those of all ranks
  WorkPtr work_;           // null once compared
};

}  // namespace tutti
