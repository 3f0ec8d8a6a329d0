#include "tensors/finite.h"

#include <ATen/ops/_amp_foreach_non_finite_check_and_unscale.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "tensors/vectors.h"

namespace tutti {
namespace {

// Without the sign, the bits of floats are in the order of the floats; infinities and NaNs are largest.
TUTTI_VECTORS uint16_t largest(const uint16_t* bits, int64_t count) {
  uint16_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max<uint16_t>(most, bits[i] & 0x7FFF);
  return most;
}

TUTTI_VECTORS uint32_t largest(const uint32_t* bits, int64_t count) {
  uint32_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, bits[i] & 0x7FFF'FFFF);
  return most;
}

TUTTI_VECTORS uint64_t largest(const uint64_t* bits, int64_t count) {
  uint64_t most = 0;
  for (int64_t i = 0; i < count; ++i) most = std::max(most, bits[i] & 0x7FFF'FFFF'FFFF'FFFF);
  return most;
}

template <class Bits>
bool below(const void* data, int64_t count, Bits infinity) {
  return largest(static_cast<const Bits*>(data), count) < infinity;
}

}  // namespace

bool all_finite(at::ScalarType dtype, const void* data, int64_t count) {
  switch (dtype) {
    case at::kFloat:
      return below<uint32_t>(data, count, 0x7F80'0000);
    case at::kDouble:
      return below<uint64_t>(data, count, 0x7FF0'0000'0000'0000);
    case at::kBFloat16:
      return below<uint16_t>(data, count, 0x7F80);
    case at::kHalf:
      return below<uint16_t>(data, count, 0x7C00);
    default:
      return true;
  }
}

bool all_finite(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) return at::isfinite(tensor).all().item<bool>();
  const at::Tensor dense = tensor.is_non_overlapping_and_dense() ? tensor : tensor.contiguous();
  return all_finite(dense.scalar_type(), dense.const_data_ptr(), dense.numel());
}

// The kernel also multiplies by a factor; here by 1, which changes no bits of finite numbers.
at::Tensor any_not_finite(const std::vector<at::Tensor>& tensors, const Device& device) {
  at::Tensor flag = at::zeros({}, device.options());
  if (!tensors.empty())
    at::_amp_foreach_non_finite_check_and_unscale_(tensors, flag, at::ones({}, device.options()));
  return flag;
}

bool gradient_is_finite(const at::Tensor& gradient) {
  if (gradient.numel() <= kReadWhole || gradient.dim() < 2) return all_finite(gradient);
  at::Tensor column = gradient;
  while (column.dim() > 1) column = column.select(1, 0);
  return all_finite(gradient.select(0, 0)) && all_finite(column);
}

}  // namespace tutti
