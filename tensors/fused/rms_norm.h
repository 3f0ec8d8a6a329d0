#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// x / sqrt(mean(x^2) + eps) * weight, over the last dimension (Zhang and Sennrich, 2019, arXiv:1910.07467).
// Computed in float32, or float64 for such x; the result has that dtype, as transformers' result has for
// weights of that dtype.
at::Tensor rms_normalised(const at::Tensor& x, const at::Tensor& weight, double eps);

}  // namespace tutti
