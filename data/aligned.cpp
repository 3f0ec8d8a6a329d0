#include "data/aligned.h"

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tutti {
namespace {

constexpr uintptr_t kAlignment = 64;

bool is_aligned(const at::Tensor& array) {
  return reinterpret_cast<uintptr_t>(array.const_data_ptr()) % kAlignment == 0;
}

}  // namespace

Batch aligned(const Batch& batch) {
  return batch.map([](const at::Tensor& array) { return is_aligned(array) ? array : array.clone(); });
}

}  // namespace tutti
