#pragma once

#include <cstdint>

#include "models/layers/diffusion/resnet.h"
#include "models/layers/layer.h"

namespace tutti {

// diffusers' Attention as in its UNets: each pixel of [N, C, H, W] attends to all pixels, behind a norm, and
// the result is added to the input. "to_q", "to_k" and "to_v" project to heads, "to_out.0" back.
class ImageAttention final : public Layer {
 public:
  ImageAttention(int64_t channels, const UnetBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Attention"; }

 private:
  at::Tensor split(const at::Tensor& x) const;

  int64_t heads_;
  double output_scale_;
  Slot* group_norm_;
  Slot& to_q_;
  Slot& to_k_;
  Slot& to_v_;
  Slot& to_out_;
};

}  // namespace tutti
