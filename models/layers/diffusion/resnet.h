#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "models/layers/conv.h"
#include "models/layers/layer.h"

namespace tutti {

// The common options of the blocks of a UNet; names are diffusers'.
struct UnetBlockOptions {
  int64_t time_features = 0;  // of the timestep's embedding
  int64_t groups = 32;        // of all norms; divides their channels
  double eps = 1e-5;
  double dropout = 0.0;
  std::string act_fn = "silu";  // or "swish", "gelu", "relu"
  bool scale_shift = false;     // the time scales and shifts the second norm's output, else adds
  int64_t head_features = 8;    // of an attention's heads; 0: a single head
  int64_t downsample_padding = 1;
  double output_scale = 1.0;  // divisor of the outputs of residual blocks and attention
  bool attention_norm = true;
};

// Images of a UNet, [N, C, H, W], and the embedding of each sample's timestep, [N, features]: the input of
// its blocks, a tree of "states" and "time".
struct TimedStates {
  at::Tensor states;
  at::Tensor time;

  static TimedStates of(const TensorTree& input) { return {input["states"], input["time"]}; }
  TensorTree tree() const { return TensorTree::Children{{"states", states}, {"time", time}}; }
};

std::shared_ptr<Layer> unet_norm(int64_t channels, const UnetBlockOptions& options);

// A convolution that keeps the size, or with stride 2 halves the size, with a bias and torch.nn's initial
// values.
std::shared_ptr<Conv2d> unet_convolution(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1,
                                         int64_t padding = -1);

// diffusers' ResnetBlock2D over TimedStates: norm1, activation, conv1, the time, norm2, activation, dropout,
// conv2, and the input, by a 1x1 convolution if channels change. Returns [N, out, H, W].
class ResnetBlock2D final : public Layer {
 public:
  ResnetBlock2D(int64_t in, int64_t out, const UnetBlockOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "ResnetBlock2D"; }

 private:
  at::Tensor with_time(const at::Tensor& x, const at::Tensor& time) const;

  bool scale_shift_;
  double output_scale_;
  Slot& nonlinearity_;
  Slot& norm1_;
  Slot& conv1_;
  Slot& time_emb_proj_;
  Slot& norm2_;
  Slot& dropout_;
  Slot& conv2_;
  Slot* conv_shortcut_;
};

}  // namespace tutti
