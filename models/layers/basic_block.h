#pragma once

#include "models/layers/layer.h"

namespace tutti {

// torchvision's BasicBlock: relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)), where the shortcut is a
// strided 1x1 convolution with a BatchNorm ("downsample.0", "downsample.1") if the shape changes, else x
// itself.
class BasicBlock final : public Layer {
 public:
  BasicBlock(int64_t in_channels, int64_t out_channels, int64_t stride);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BasicBlock"; }

 private:
  Slot& conv1_;
  Slot& bn1_;
  Slot& relu_;
  Slot& conv2_;
  Slot& bn2_;
  Slot* downsample_ = nullptr;
};

}  // namespace tutti
