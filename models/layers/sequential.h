#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Layers one after another, in slots "0", "1", ...; torch.nn.Sequential.
class Sequential final : public Layer {
 public:
  explicit Sequential(std::vector<std::shared_ptr<Layer>> layers);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Sequential"; }
};

}  // namespace tutti
