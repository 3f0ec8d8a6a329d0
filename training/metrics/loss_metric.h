#pragma once

#include <functional>

#include "models/metric.h"

namespace tutti {

// A loss as a metric: composer.metrics.LossMetric. Each batch weighs by its samples; with `batch_means` all
// batches weigh the same, as in Composer.
class LossMetric final : public Metric {
 public:
  using Loss = std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& target)>;  // a scalar

  LossMetric(Loss loss, bool batch_means) : loss_(std::move(loss)), batch_means_(batch_means) {}
  std::string name() const override { return "LossMetric"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  Loss loss_;
  bool batch_means_;
  std::vector<double> sums_ = {0.0, 0.0};  // weighted losses, weights
};

}  // namespace tutti
