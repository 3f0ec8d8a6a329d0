#include "tensors/finite.h"

#include <ATen/ops/isfinite.h>

#include <bit>

namespace tutti {
namespace {

constexpr uint32_t kExponent = 0x7f800000;  // all ones only in infinities and NaNs

bool all_finite(const float* values, int64_t count) {
  uint32_t found = 0;
  for (int64_t i = 0; i < count; ++i)
    found |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent ? 1 : 0;
  return found == 0;
}

}  // namespace

bool all_finite(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat) return at::isfinite(tensor).all().item<bool>();
  const at::Tensor dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  return all_finite(dense.const_data_ptr<float>(), dense.numel());
}

bool gradient_is_finite(const at::Tensor& gradient) {
  if (gradient.numel() <= kReadWhole || gradient.dim() < 2) return all_finite(gradient);
  at::Tensor column = gradient;
  while (column.dim() > 1) column = column.select(1, 0);
  return all_finite(gradient.select(0, 0)) && all_finite(column);
}

}  // namespace tutti
