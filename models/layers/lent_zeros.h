#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "models/layers/layer.h"

namespace tutti {

// While this object lives, parameters and buffers of the meta device are zeros on the CPU that use no memory:
// the model can run, to find the shapes of its outputs.
class LentZeros {
 public:
  // On the device of the batches.
  LentZeros(Layer& model, const Device& device);
  ~LentZeros();
  LentZeros(const LentZeros&) = delete;

 private:
  void lend(at::Tensor& tensor, const Device& device);

  std::vector<std::pair<at::Tensor*, at::Tensor>> tensors_;  // the model's, and what was there
};

}  // namespace tutti
