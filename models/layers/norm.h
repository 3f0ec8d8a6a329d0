#pragma once

#include "models/layers/layer.h"

namespace tutti {

// torch.nn.BatchNorm's arguments.
struct BatchNormOptions {
  int64_t channels = 0;
  double eps = 1e-5;      // added to the variance
  double momentum = 0.1;  // weight of new statistics
  bool affine = true;     // false: no weight and bias
};

// Normalises each channel of [N, channels, ...] over all other dimensions; names and values of
// torch.nn.BatchNorm. A training pass puts its statistics into the context and changes no buffer;
// `apply_statistics` updates the buffers later. One value a channel has no variance and leaves no statistics.
class BatchNorm : public Layer {
 public:
  TensorTree forward(const TensorTree& input) override;
  const BatchNormOptions& options() const { return options_; }
  Parameter* weight() const { return weight_; }  // null without affine
  Parameter* bias() const { return bias_; }
  // The weight of statistics that later calls find.
  void set_momentum(double momentum) { options_.momentum = momentum; }

  // Mean and unbiased variance of each channel, then their weight in the update of the buffers.
  int64_t statistics_size() const override { return 2 * options_.channels + 1; }
  void join_statistics(RunningStatistics& so_far, const RunningStatistics& next) const override;
  void apply_statistics(const RunningStatistics& statistics, BufferUpdates& updates) override;

 protected:
  explicit BatchNorm(const BatchNormOptions& options);

 private:
  BatchNormOptions options_;
  Parameter* weight_;
  Parameter* bias_;
  Buffer& running_mean_;
  Buffer& running_var_;
  Buffer& batches_tracked_;
};

// Normalises each channel of [N, channels, ...] by its own mean and variance in `x`. `moments`, if defined:
// float32 [2 * channels], gets the means and unbiased variances.
at::Tensor batch_normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
                            const at::Tensor& moments = {});

// [N, channels] and [N, channels, L]; torch.nn.BatchNorm1d.
class BatchNorm1d final : public BatchNorm {
 public:
  explicit BatchNorm1d(const BatchNormOptions& options) : BatchNorm(options) {}
  explicit BatchNorm1d(int64_t channels, double eps = 1e-5, double momentum = 0.1)
      : BatchNorm(BatchNormOptions{channels, eps, momentum}) {}
  const char* kind() const override { return "BatchNorm1d"; }
};

// [N, channels, H, W]; torch.nn.BatchNorm2d.
class BatchNorm2d final : public BatchNorm {
 public:
  explicit BatchNorm2d(const BatchNormOptions& options) : BatchNorm(options) {}
  explicit BatchNorm2d(int64_t channels, double eps = 1e-5, double momentum = 0.1)
      : BatchNorm(BatchNormOptions{channels, eps, momentum}) {}
  const char* kind() const override { return "BatchNorm2d"; }
};

// [N, channels, D, H, W]; torch.nn.BatchNorm3d.
class BatchNorm3d final : public BatchNorm {
 public:
  explicit BatchNorm3d(const BatchNormOptions& options) : BatchNorm(options) {}
  explicit BatchNorm3d(int64_t channels, double eps = 1e-5, double momentum = 0.1)
      : BatchNorm(BatchNormOptions{channels, eps, momentum}) {}
  const char* kind() const override { return "BatchNorm3d"; }
};

// torch.nn.LayerNorm's arguments.
struct LayerNormOptions {
  Shape shape;  // of the last dimensions
  double eps = 1e-5;
  bool affine = true;  // false: no weight and bias
  bool bias = true;    // false: no bias
  // The output goes to linear layers alone, for which autocast casts: devices then write an output with 16
  // bits.
  bool before_linear = false;
};

// Normalises over the last dimensions together; torch.nn.LayerNorm.
class LayerNorm final : public Layer {
 public:
  explicit LayerNorm(const LayerNormOptions& options);
  explicit LayerNorm(int64_t features, double eps = 1e-5)
      : LayerNorm(LayerNormOptions{.shape = {features}, .eps = eps}) {}
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LayerNorm"; }
  const LayerNormOptions& options() const { return options_; }
  Parameter* weight() const { return weight_; }  // null if there is none
  Parameter* bias() const { return bias_; }

 private:
  LayerNormOptions options_;
  Parameter* weight_;
  Parameter* bias_;
};

// Divides by the root of the mean square over the last dimension, without a bias, in float32 (float64);
// torch.nn.RMSNorm, and transformers' LlamaRMSNorm.
class RMSNorm final : public Layer {
 public:
  explicit RMSNorm(int64_t features, double eps = 1e-6);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "RMSNorm"; }
  double eps() const { return eps_; }
  Parameter& weight() const { return weight_; }

 private:
  Parameter& weight_;
  double eps_;
};

// x, for libtorch's group norm. Its backward on CPUs (2.11) writes a gradient for an input in channels-last
// order though the input wants none, and ends the process: an input in that order is copied to the usual
// order.
at::Tensor for_group_norm(const at::Tensor& x);

// torch.nn.GroupNorm's arguments.
struct GroupNormOptions {
  int64_t groups = 1;  // divides the channels
  int64_t channels = 0;
  double eps = 1e-5;
  bool affine = true;  // false: no weight and bias
};

// Normalises [N, channels, ...] over groups of channels, each sample alone; torch.nn.GroupNorm.
class GroupNorm final : public Layer {
 public:
  explicit GroupNorm(const GroupNormOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "GroupNorm"; }
  const GroupNormOptions& options() const { return options_; }
  Parameter* weight() const { return weight_; }  // null without affine
  Parameter* bias() const { return bias_; }

 private:
  GroupNormOptions options_;
  Parameter* weight_;
  Parameter* bias_;
};

}  // namespace tutti
