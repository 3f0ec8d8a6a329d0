#pragma once

#include <ATen/core/Tensor.h>

#include "collectives/group.h"

namespace tutti {

// What a rank asked its group for. `whole` is the tensor that holds all of the data (the input of
// reduce_scatter, the output of all_gather), `part` the one that holds this rank's chunk of it; the other
// kinds have no part.
struct CollectiveJob {
  CollectiveHeader header;
  at::Tensor whole;
  at::Tensor part;
  int root = 0;
};

}  // namespace tutti
