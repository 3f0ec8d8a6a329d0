#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Normalises the last dimension, which has `features` values; torch.nn.LayerNorm.
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(int64_t features, double eps = 1e-5);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LayerNorm"; }

 private:
  Parameter& weight_;
  Parameter& bias_;
  double eps_;
};

}  // namespace tutti
