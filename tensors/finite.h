#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "tensors/device.h"

namespace tutti {

// True if no element is an infinity or NaN. Reads the whole tensor.
bool all_finite(const at::Tensor& tensor);
// The same for `count` contiguous numbers. True for integers.
bool all_finite(at::ScalarType dtype, const void* data, int64_t count);

// The same for a parameter's gradient [out, in, ...], but of more than kReadWhole elements reads only the
// first row and the first column, since a full check costs a small batch some percent of its step. A
// non-finite activation or gradient spreads over whole rows or columns. Missed are overflows of single
// elements in a product of finite factors, which are common in 16 bits.
bool gradient_is_finite(const at::Tensor& gradient);

// For tensors of a device: a float32 scalar there, 1 if any element is not finite, else 0. The host does not
// wait. Writes each tensor with its own numbers.
at::Tensor any_not_finite(const std::vector<at::Tensor>& tensors, const Device& device);

inline constexpr int64_t kReadWhole = int64_t{1} << 18;

}  // namespace tutti
