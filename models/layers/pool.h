#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Flattens all dimensions but the first: [N, ...] to [N, values].
class Flatten final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override { return input.tensor().flatten(1); }
  const char* kind() const override { return "Flatten"; }
};

// Mean of each channel: [N, C, H, W] to [N, C, 1, 1].
class AdaptiveAvgPool2d final : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "AdaptiveAvgPool2d"; }
};

// Maximum of each window of size x size: [N, C, H, W] to [N, C, H', W'] with H' = (H + 2 padding - size) /
// stride + 1, rounded down.
class MaxPool2d final : public Layer {
 public:
  MaxPool2d(int64_t size, int64_t stride, int64_t padding = 0)
      : size_(size), stride_(stride), padding_(padding) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "MaxPool2d"; }

 private:
  int64_t size_, stride_, padding_;
};

// Mean of each window; shapes as MaxPool2d. `counts_padding`: padding zeros count as values.
class AvgPool2d final : public Layer {
 public:
  AvgPool2d(int64_t size, int64_t stride, int64_t padding = 0, bool counts_padding = true)
      : size_(size), stride_(stride), padding_(padding), counts_padding_(counts_padding) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "AvgPool2d"; }

 private:
  int64_t size_, stride_, padding_;
  bool counts_padding_;
};

}  // namespace tutti
