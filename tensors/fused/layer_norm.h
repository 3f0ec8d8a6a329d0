#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// True if narrow_layer_norm takes these tensors: under autocast, on devices with a kernel for the function,
// with C a multiple of 4 and at most 4,096.
bool has_narrow_layer_norm(const at::Tensor& x, const at::Tensor& weight);

// Normalises x [..., C], float32, over its last dimension, with weight and bias [C], float32; the result has
// the 16 bits of autocast, as if cast for a product. libtorch's layer_norm writes float32, which is cast and
// read again, and so are gradients.
at::Tensor narrow_layer_norm(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                             double eps);

}  // namespace tutti
