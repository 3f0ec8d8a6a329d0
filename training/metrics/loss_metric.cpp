#include "training/metrics/loss_metric.h"

#include <ATen/core/Tensor.h>

namespace tutti {

void LossMetric::update(const at::Tensor& outputs, const at::Tensor& target) {
  const double weight = batch_means_ ? share() : static_cast<double>(outputs.size(0));
  sums_[0] += weight * loss_(outputs, target).item<double>();
  sums_[1] += weight;
}

double LossMetric::compute() const { return sums_[0] / sums_[1]; }

}  // namespace tutti
