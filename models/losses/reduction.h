#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// What becomes of the losses of single items: they stay apart, or their mean or sum is the loss. The numbers
// are libtorch's.
enum class LossReduction : int64_t { kNone, kMean, kSum };

at::Tensor reduced(const at::Tensor& losses, LossReduction reduction);

}  // namespace tutti
