#pragma once

#include <ATen/core/Tensor.h>

#include <utility>
#include <vector>

#include "models/layers/layer.h"

namespace tutti {

// While this lives, parameters and buffers that are on the meta device are zeros on the CPU, which take no
// memory either: the model can be run for the shapes of what it makes.
class LentZeros {
 public:
  explicit LentZeros(Layer& model);
  ~LentZeros();
  LentZeros(const LentZeros&) = delete;

 private:
  void lend(at::Tensor& tensor);

  std::vector<std::pair<at::Tensor*, at::Tensor>> tensors_;  // the model's, and what was there
};

}  // namespace tutti
