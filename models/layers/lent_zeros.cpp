#include "models/layers/lent_zeros.h"

#include <ATen/ops/zeros.h>

namespace tutti {

LentZeros::LentZeros(Layer& model, const Device& device) {
  for (const auto& named : parameters(model)) lend(named.parameter->tensor, device);
  for (const auto& named : buffers(model)) lend(named.buffer->tensor, device);
}

LentZeros::~LentZeros() {
  for (auto& [tensor, given] : tensors_) *tensor = given;
}

void LentZeros::lend(at::Tensor& tensor, const Device& device) {
  if (!tensor.is_meta()) return;
  tensors_.emplace_back(&tensor, tensor);
  tensor = at::zeros({}, device.options(tensor.scalar_type())).expand(tensor.sizes());
}

}  // namespace tutti
