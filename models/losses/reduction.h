#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// What becomes of the losses of single items: they stay apart, or their mean or sum is the loss. The numbers
// are libtorch's.
enum class Reduction : int64_t { kNone, kMean, kSum };

at::Tensor reduced(const at::Tensor& losses, Reduction reduction);

}  // namespace tutti
