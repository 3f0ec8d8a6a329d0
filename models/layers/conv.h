#pragma once

#include <array>
#include <cstdint>

#include "models/layers/layer.h"

namespace tutti {

// Height and width; one number stands for both.
struct Extent2d {
  constexpr Extent2d(int64_t both) : Extent2d(both, both) {}
  constexpr Extent2d(int64_t of_height, int64_t of_width) : height(of_height), width(of_width) {}
  std::array<int64_t, 2> dims() const { return {height, width}; }
  int64_t area() const { return height * width; }
  friend bool operator==(const Extent2d&, const Extent2d&) = default;

  int64_t height, width;
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
class Conv2d final : public Layer {
 public:
  explicit Conv2d(const Conv2dOptions& options);
  // With the parameters of another convolution, which must have the shapes that the options ask for.
  Conv2d(const Conv2dOptions& options, const Conv2d& adopted);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv2d"; }
  const Conv2dOptions& options() const { return options_; }
  Parameter& weight() const { return weight_; }
  Parameter* bias() const { return bias_; }  // null if there is none

 private:
  Conv2dOptions options_;
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
class Conv1d final : public Layer {
 public:
  explicit Conv1d(const Conv1dOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Conv1d"; }
  const Conv1dOptions& options() const { return options_; }
  Parameter& weight() const { return weight_; }
  Parameter* bias() const { return bias_; }  // null if there is none

 private:
  Conv1dOptions options_;
  Parameter& weight_;
  Parameter* bias_;
};

}  // namespace tutti
