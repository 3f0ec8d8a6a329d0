#pragma once

#include "models/metric.h"

namespace tutti {

// The mean over updates of each batch's mean cross entropy of scores [N, classes, ...] against class indices
// or class probabilities, in nats: composer.metrics.CrossEntropy. Probabilities that do not sum to one are
// scaled as there.
class CrossEntropy final : public Metric {
 public:
  std::string name() const override { return "CrossEntropy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  std::vector<double> sums_ = {0.0, 0.0};  // batch means, updates
};

}  // namespace tutti
