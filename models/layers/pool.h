#pragma once

#include "models/layer.h"

namespace tutti {

// The mean of every channel: [N, C, H, W] to [N, C, 1, 1].
class AdaptiveAvgPool2d final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "AdaptiveAvgPool2d"; }
};

}  // namespace tutti
