#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/layers/attention.h"
#include "models/layers/layer.h"
#include "models/layers/residual_block.h"

namespace tutti {

class LayerNorm;

// Layers in a row, in slots "0", "1", ..., behind a prefix; torch.nn.Sequential.
class Sequential final : public Layer {
 public:
  explicit Sequential(std::vector<std::shared_ptr<Layer>> layers, const std::string& slot_prefix = "");
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Sequential"; }
};

// main(x) + shortcut(x); the shortcut is x if there is none.
class ResidualLayers final : public ResidualBlock {
 public:
  explicit ResidualLayers(std::shared_ptr<Layer> main, std::shared_ptr<Layer> shortcut = nullptr);
  const char* kind() const override { return "Residual"; }

 protected:
  at::Tensor main(const at::Tensor& x) override { return main_(x); }
  at::Tensor shortcut(const at::Tensor& x) override { return shortcut_ ? (*shortcut_)(x) : x; }

 private:
  Slot& main_;
  Slot* shortcut_;
};

// The outputs of several layers for one input, joined along a dimension; slots "0", "1", ...
class Concat final : public Layer {
 public:
  Concat(std::vector<std::shared_ptr<Layer>> branches, int64_t dim);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Concat"; }

 private:
  int64_t dim_;
};

// The part of a tensor at an index of a dimension, as torch.select: Select(1, -1) of [N, T, features] is the
// last step.
class Select final : public Layer {
 public:
  Select(int64_t dim, int64_t index) : dim_(dim), index_(index) {}
  TensorTree forward(const TensorTree& input) override { return input.tensor().select(dim_, index_); }
  const char* kind() const override { return "Select"; }

 private:
  int64_t dim_, index_;
};

// torchvision's BasicBlock: relu(bn2(conv2(relu(bn1(conv1(x))))) + shortcut(x)). The shortcut is x or, if
// the shape changes, a strided 1x1 convolution with a BatchNorm ("downsample.0", "downsample.1").
class BasicBlock final : public ResidualBlock {
 public:
  BasicBlock(int64_t in_channels, int64_t out_channels, int64_t stride);
  const char* kind() const override { return "BasicBlock"; }

 protected:
  at::Tensor main(const at::Tensor& x) override;
  at::Tensor shortcut(const at::Tensor& x) override;
  at::Tensor join(at::Tensor main, const at::Tensor& shortcut) override;
  at::Tensor skip(const at::Tensor& x) override;

 private:
  Slot& conv1_;
  Slot& bn1_;
  Slot& relu_;
  Slot& conv2_;
  Slot& bn2_;
  Slot* downsample_ = nullptr;
};

// torchvision's Bottleneck: 1x1, 3x3 (strided) and 1x1 convolutions, each with a BatchNorm, to 4 x
// `channels`; relu after the first two and after the sum with the shortcut, as in BasicBlock.
class Bottleneck final : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 4;

  Bottleneck(int64_t in_channels, int64_t channels, int64_t stride);
  const char* kind() const override { return "Bottleneck"; }

 protected:
  at::Tensor main(const at::Tensor& x) override;
  at::Tensor shortcut(const at::Tensor& x) override;
  at::Tensor join(at::Tensor main, const at::Tensor& shortcut) override;
  at::Tensor skip(const at::Tensor& x) override;

 private:
  Slot& conv1_;
  Slot& bn1_;
  Slot& conv2_;
  Slot& bn2_;
  Slot& conv3_;
  Slot& bn3_;
  Slot& relu_;
  Slot* downsample_ = nullptr;
};

// A norm whose output goes to linear layers alone: LayerNormOptions::before_linear.
std::shared_ptr<LayerNorm> norm_before_linear(int64_t features);

// GPT-2's feed-forward block: c_fc to 4 x features, GELU (tanh), c_proj back.
class GptMlp final : public Layer {
 public:
  GptMlp(int64_t features, double dropout, double output_deviation);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GptMlp"; }

 private:
  Slot& c_fc_;
  Slot& act_;
  Slot& c_proj_;
  Slot& dropout_;
};

// y = x + attn(ln_1(x)); returns y + mlp(ln_2(y)).
class GptBlock final : public Layer {
 public:
  explicit GptBlock(const CausalSelfAttention::Options& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GptBlock"; }

 private:
  Slot& ln_1_;
  Slot& attn_;
  Slot& ln_2_;
  Slot& mlp_;
};

}  // namespace tutti
