#pragma once

#include "tensors/tree.h"

namespace tutti {

// The batch, with copies of arrays that do not begin at a multiple of 64 bytes. Kernels of MKL may round
// otherwise there, so a grain would have other bits behind other grains of its rank.
Batch aligned(const Batch& batch);

}  // namespace tutti
