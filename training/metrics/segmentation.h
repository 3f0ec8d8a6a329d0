#pragma once

#include "models/metric.h"

namespace tutti {

// Intersection over union, in percent, of the classes that scores [N, num_classes, ...] give and those of the
// targets [N, ...]: the mean over the classes that occur in either. Targets of `ignore_index` do not count.
// composer.metrics.MIoU.
class MIoU final : public Metric {
 public:
  MIoU(int64_t num_classes, int64_t ignore_index);
  std::string name() const override { return "MIoU"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  int64_t num_classes_;
  int64_t ignore_index_;
  std::vector<double> sums_;  // of each class: both, predicted, wanted
};

// Dice's coefficient in percent: the mean over the classes but 0, which is the background. A class that does
// not occur counts as 1 where it is not predicted either, else as 0. Over all samples; with `batch_means` the
// mean over updates of each batch's own mean, as composer.metrics.Dice has it.
class Dice final : public Metric {
 public:
  Dice(int64_t num_classes, bool batch_means);  // the background is one of them
  std::string name() const override { return "Dice"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  int64_t num_classes_;
  bool batch_means_;
  std::vector<double> sums_;  // of each class: both, predicted, wanted; or batch means and updates
};

}  // namespace tutti
