#pragma once

#include "models/metric.h"

namespace tutti {

// Intersection over union in percent of predicted and target classes, for scores [N, num_classes, ...] and
// targets [N, ...]: the mean over the classes that occur in either. Targets equal to `ignore_index` do not
// count. Sums per class: intersection, predicted, wanted. composer.metrics.MIoU.
class MIoU : public Metric {
 public:
  MIoU(int64_t num_classes, int64_t ignore_index);
  std::string name() const override { return "MIoU"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;

 private:
  int64_t num_classes_;
  int64_t ignore_index_;
};

// Dice coefficient in percent: the mean over all classes but 0, the background. A class without targets
// counts 1 if never predicted, else 0. Over all samples; with `batch_means` the mean over batches of each
// batch's value, as in composer.metrics.Dice. Sums: as MIoU.
class Dice : public Metric {
 public:
  Dice(int64_t num_classes, bool batch_means);  // num_classes includes the background
  std::string name() const override { return "Dice"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override { return 100.0 * Metric::compute(); }

 private:
  double value_of(std::span<const double> areas) const override;

  int64_t num_classes_;
};

}  // namespace tutti
