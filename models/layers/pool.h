#pragma once

#include <array>
#include <optional>

#include "models/layers/conv.h"
#include "models/layers/layer.h"

namespace tutti {

// Flattens all dimensions but the first: [N, ...] to [N, values].
class Flatten final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override { return input.tensor().flatten(1); }
  const char* kind() const override { return "Flatten"; }
};

// Means over windows of about one size, as many as asked for: [N, C, H, W] to [N, C, size].
class AdaptiveAvgPool2d final : public Layer {
 public:
  explicit AdaptiveAvgPool2d(Extent2d size = 1) : size_(size) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "AdaptiveAvgPool2d"; }

 private:
  Extent2d size_;
};

// torch.nn.MaxPool2d's arguments.
struct MaxPool2dOptions {
  Extent2d kernel_size = 2;
  Extent2d stride = 2;
  Extent2d padding = 0;  // on each side, at most half of kernel_size; never the maximum
  Extent2d dilation = 1;
  bool ceil_mode = false;
};

// Maximum of each window: [N, C, H, W] to [N, C, H', W'] with H' = (H + 2 padding - dilation (size - 1) - 1)
// / stride + 1, rounded down or by `ceil_mode` up.
class MaxPool2d final : public Layer {
 public:
  explicit MaxPool2d(const MaxPool2dOptions& options) : options_(options) {}
  MaxPool2d(int64_t size, int64_t stride, int64_t padding = 0)
      : MaxPool2d(MaxPool2dOptions{.kernel_size = size, .stride = stride, .padding = padding}) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "MaxPool2d"; }
  const MaxPool2dOptions& options() const { return options_; }

 private:
  MaxPool2dOptions options_;
};

// torch.nn.AvgPool2d's arguments.
struct AvgPool2dOptions {
  Extent2d kernel_size = 2;
  Extent2d stride = 2;
  Extent2d padding = 0;  // zeros on each side, at most half of kernel_size
  bool ceil_mode = false;
  bool counts_padding = true;  // padding zeros count as values
};

// Mean of each window; shapes as MaxPool2d without dilation.
class AvgPool2d final : public Layer {
 public:
  explicit AvgPool2d(const AvgPool2dOptions& options) : options_(options) {}
  AvgPool2d(int64_t size, int64_t stride, int64_t padding = 0, bool counts_padding = true)
      : AvgPool2d(AvgPool2dOptions{
            .kernel_size = size, .stride = stride, .padding = padding, .counts_padding = counts_padding}) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "AvgPool2d"; }
  const AvgPool2dOptions& options() const { return options_; }

 private:
  AvgPool2dOptions options_;
};

// torch.nn.Upsample's arguments: a size, or factors of the input's.
struct UpsampleOptions {
  enum class Mode { kNearest, kBilinear, kBicubic };
  std::optional<Extent2d> size = {};
  std::optional<std::array<double, 2>> scale_factor = {};
  Mode mode = Mode::kNearest;
  bool align_corners = false;  // of bilinear and bicubic: pixels of the corners keep their values
};

// Enlarges images: [N, C, H, W] to [N, C, H', W'], with H' the size or floor(H scale_factor).
class Upsample final : public Layer {
 public:
  explicit Upsample(const UpsampleOptions& options) : options_(options) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "Upsample"; }

 private:
  UpsampleOptions options_;
};

}  // namespace tutti
