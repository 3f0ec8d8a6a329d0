#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// No element is an infinity or NaN. One read of the memory, for float32 without gaps nothing else.
bool all_finite(const at::Tensor& tensor);

}  // namespace tutti
