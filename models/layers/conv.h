#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <utility>

#include "models/layers/layer.h"

namespace tutti {

// Height and width; a single number is both.
struct Extent2d {
  constexpr Extent2d(int64_t both) : Extent2d(both, both) {}
  constexpr Extent2d(int64_t rows, int64_t columns) : height(rows), width(columns) {}
  std::array<int64_t, 2> dims() const { return {height, width}; }
  int64_t area() const { return height * width; }
  friend bool operator==(const Extent2d&, const Extent2d&) = default;

  int64_t height, width;
};

// The common part of convolutions: W [out, in / groups, kernel] and b [out]. A convolution of your own that
// derives from this class, and convolves with `kernel()`, takes part in surgery on weights
// (WeightStandardization).
class Convolution : public Layer {
 public:
  // Shaped as the weight, of which the gradient flows through the rule.
  using WeightRule = std::function<at::Tensor(const at::Tensor& weight)>;

  Parameter& weight() const { return weight_; }
  Parameter* bias() const { return bias_; }  // null if there is none
  // Computes the convolution's kernel from the weight; empty = the weight is the kernel.
  const WeightRule& weight_rule() const { return rule_; }
  void set_weight_rule(WeightRule rule) { rule_ = std::move(rule); }
  at::Tensor kernel() const { return rule_ ? rule_(weight_.tensor) : weight_.tensor; }

 protected:
  // `init`: of the weight; the default is torch's, as of the bias.
  Convolution(const Shape& weight, bool bias, Init init = nullptr);
  // With the parameters and the rule of `other`, which must have the requested shapes.
  Convolution(const Shape& weight, bool bias, const Convolution& adopted);
  at::Tensor bias_or_none() const { return bias_ ? bias_->tensor : at::Tensor(); }

 private:
  Parameter& weight_;
  Parameter* bias_;
  WeightRule rule_;
};

// torch.nn.Conv2d's arguments.
struct Conv2dOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  Extent2d kernel_size = 1;
  Extent2d stride = 1;
  Extent2d padding = 0;  // zeros on each side
  Extent2d dilation = 1;
  int64_t groups = 1;
  bool bias = false;
};

// Convolves [N, in, H, W] with W [out, in / groups, kernel]. W starts as in torchvision's ResNets (normal,
// fan_out), b as in nn.Conv2d.
class Conv2d final : public Convolution {
 public:
  explicit Conv2d(const Conv2dOptions& options);
  // With the parameters and the rule of `other`, which must have the options' shapes.
  Conv2d(const Conv2dOptions& options, const Conv2d& adopted);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv2d"; }
  const Conv2dOptions& options() const { return options_; }

 private:
  Conv2dOptions options_;
};

// torch.nn.ConvTranspose2d's arguments.
struct ConvTranspose2dOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  Extent2d kernel_size = 1;
  Extent2d stride = 1;
  Extent2d padding = 0;         // of the convolution whose gradient this is
  Extent2d output_padding = 0;  // rows and columns more, at the end of each dimension
  Extent2d dilation = 1;
  int64_t groups = 1;
  bool bias = true;
};

// The gradient of a convolution, as a layer: [N, in, H, W] to [N, out, H', W'] with H' = (H - 1) stride - 2
// padding + dilation (kernel - 1) + output_padding + 1. W [in, out / groups, kernel]; torch.nn's with its
// initial values.
class ConvTranspose2d final : public Layer {
 public:
  explicit ConvTranspose2d(const ConvTranspose2dOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "ConvTranspose2d"; }
  const ConvTranspose2dOptions& options() const { return options_; }

 private:
  ConvTranspose2dOptions options_;
  Parameter& weight_;
  Parameter* bias_;
};

// torch.nn.Conv1d's arguments.
struct Conv1dOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  int64_t kernel_size = 1;
  int64_t stride = 1;
  int64_t padding = 0;  // zeros on each side
  int64_t dilation = 1;
  int64_t groups = 1;
  bool bias = false;
};

// Convolves [N, in, L] with W [out, in / groups, kernel]; torch.nn.Conv1d with its initial values.
class Conv1d final : public Convolution {
 public:
  explicit Conv1d(const Conv1dOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv1d"; }
  const Conv1dOptions& options() const { return options_; }

 private:
  Conv1dOptions options_;
};

// Depth, height and width.
using Extent3d = std::array<int64_t, 3>;

// torch.nn.Conv3d's arguments.
struct Conv3dOptions {
  int64_t in_channels = 0;
  int64_t out_channels = 0;
  Extent3d kernel_size = {1, 1, 1};
  Extent3d stride = {1, 1, 1};
  Extent3d padding = {0, 0, 0};  // zeros on each side
  Extent3d dilation = {1, 1, 1};
  int64_t groups = 1;
  bool bias = false;
};

// Convolves [N, in, D, H, W] with W [out, in / groups, kernel]; torch.nn.Conv3d with its initial values.
class Conv3d final : public Convolution {
 public:
  explicit Conv3d(const Conv3dOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv3d"; }
  const Conv3dOptions& options() const { return options_; }

 private:
  Conv3dOptions options_;
};

}  // namespace tutti
