#include "models/layers/lent_zeros.h"

#include <ATen/ops/zeros.h>

namespace tutti {

LentZeros::LentZeros(Layer& model) {
  for (const auto& one : parameters(model)) lend(one.parameter->tensor);
  for (const auto& one : buffers(model)) lend(one.buffer->tensor);
}

LentZeros::~LentZeros() {
  for (auto& [tensor, given] : tensors_) *tensor = given;
}

void LentZeros::lend(at::Tensor& tensor) {
  if (!tensor.is_meta()) return;
  tensors_.emplace_back(&tensor, tensor);
  tensor = at::zeros({}, tensor.options().device(at::kCPU).requires_grad(false)).expand(tensor.sizes());
}

}  // namespace tutti
