#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/model.h"

namespace tutti {

// A torch::nn::Module for images [N, 1, 4, 4] with convolutions, batch norms and 3 classes, adapted.
struct AdaptedNet {
  bool frozen_norms = false;   // they are in evaluation
  bool writes_buffer = false;  // forward does
  double dropout = 0.0;

  std::shared_ptr<Layer> layer() const;
  // As torch::nn has it: outputs of a training pass on x, then gradients for `probe` and buffers by name.
  struct Plain {
    at::Tensor output;
    std::vector<std::pair<std::string, at::Tensor>> gradients, buffers;
  };
  Plain plain(const at::Tensor& x, const at::Tensor& probe) const;
};

}  // namespace tutti
