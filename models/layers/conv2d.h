#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Square kernels; torch.nn.Conv2d's arguments.
struct Conv2dOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t kernel_size = 1;
  int64_t stride = 1;
  int64_t padding = 0;
  int64_t groups = 1;
  bool bias = false;
};

// Convolves [N, in, H, W] with W [out, in / groups, k, k]. The weight starts as torchvision's ResNets do
// (normal, fan_out), the bias as nn.Conv2d.
class Conv2d final : public Layer {
 public:
  explicit Conv2d(const Conv2dOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv2d"; }
  const Conv2dOptions& options() const { return options_; }

 private:
  Conv2dOptions options_;
  Parameter& weight_;
  Parameter* bias_;
};

}  // namespace tutti
