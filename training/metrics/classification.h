#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/metric.h"
#include "training/metrics/options.h"

namespace tutti {

// How often each class occurs in `labels` where `counted`, of the same shape, is true: float64 [classes].
// Labels outside of [0, classes) are skipped. The host waits for no device.
at::Tensor class_counts(const at::Tensor& labels, const at::Tensor& counted, int64_t classes);

// Throws UserError unless the outputs are scores [N, classes, ...] of targets [N, ...]. Other shapes may have
// the same number of rows, and would be compared with the wrong targets.
void require_scores_of(const std::string& metric, const at::Tensor& target, const at::Tensor& outputs);

// The scores as [..., classes] of targets [...]. Models of tokens return this shape; other models have
// classes in dim 1, which counts where the last dimension does not fit. Throws UserError for other shapes.
at::Tensor scores_of_tokens(const std::string& metric, const at::Tensor& target, const at::Tensor& outputs);

// Throws UserError unless dim 1 of the outputs has size `classes` (the metric's num_classes).
void require_classes(const std::string& metric, const at::Tensor& outputs, int64_t classes);

// Fraction of targets [N, ...] among the `top_k` highest scores in dim 1 of [N, classes, ...]: torchmetrics'
// MulticlassAccuracy. Over all samples, or the mean over the classes that occur in targets or, with top_k 1,
// in predictions. Throws UserError for other shapes.
class MulticlassAccuracy : public Metric {
 public:
  using Options = MulticlassAccuracyOptions;

  explicit MulticlassAccuracy(const Options& options);
  std::string name() const override { return "MulticlassAccuracy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;

 private:
  void count_rows(const at::Tensor& outputs, const at::Tensor& target);
  void count(const at::Tensor& outputs, const at::Tensor& target);
  bool occurs(size_t index) const;

  Options options_;
  size_t cells_;  // 1, or the number of classes; sums: correct, targets, predictions, of this size each
};

// Fraction of targets with the highest score, for scores_of_tokens; targets equal to `ignore_index` do not
// count. Sums: correct, all. composer.metrics.MaskedAccuracy.
class MaskedAccuracy : public Metric {
 public:
  explicit MaskedAccuracy(int64_t ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "MaskedAccuracy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t ignore_index_;
};

}  // namespace tutti
