#pragma once

#include "tensors/kernels/graph.h"

namespace tutti {

// For work of the current device, on a stream other than the default stream. The caller owns it.
DeviceGraph* make_cuda_graph();

}  // namespace tutti
