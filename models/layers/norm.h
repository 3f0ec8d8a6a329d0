#pragma once

#include "models/layers/layer.h"

namespace tutti {

// Normalises [N, channels, H, W] per channel; names and values of torch.nn.BatchNorm2d. `eps` is added to
// the variance; `momentum` is the weight of new statistics. A training pass puts its statistics into the
// context and changes no buffer; `apply_statistics` updates the buffers later.
class BatchNorm2d : public Layer {
 public:
  explicit BatchNorm2d(int64_t channels, double eps = 1e-5, double momentum = 0.1);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BatchNorm2d"; }
  int64_t statistics_channels() const override { return running_mean_.tensor.numel(); }
  void apply_statistics(const RunningStatistics& found) override;

 private:
  at::Tensor normalise(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& variance,
                       bool training) const;

  Parameter& weight_;
  Parameter& bias_;
  Buffer& running_mean_;
  Buffer& running_var_;
  Buffer& batches_tracked_;
  double eps_, momentum_;
};

// The same for [N, channels] and [N, channels, L]; torch.nn.BatchNorm1d.
class BatchNorm1d final : public BatchNorm2d {
 public:
  using BatchNorm2d::BatchNorm2d;
  const char* kind() const override { return "BatchNorm1d"; }
};

// Normalises the last dimension of `features` values; torch.nn.LayerNorm.
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(int64_t features, double eps = 1e-5);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LayerNorm"; }

 private:
  Parameter& weight_;
  Parameter& bias_;
  double eps_;
};

}  // namespace tutti
