#pragma once

#include "models/metric.h"

namespace tutti {

// The part of all samples whose highest score (dim 1 of [N, classes, ...]) is the target's: torchmetrics'
// with average="micro". Targets of kIgnored do not count.
class MulticlassAccuracy final : public Metric {
 public:
  static constexpr int64_t kIgnored = -100;

  std::string name() const override { return "MulticlassAccuracy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  std::vector<double> sums_ = {0.0, 0.0};  // right, all
};

}  // namespace tutti
