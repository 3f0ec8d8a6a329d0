#pragma once

#include "models/metric.h"

namespace tutti {

// The mean over all elements of the squared difference of outputs and target, of one shape; its root where
// `squared` is false. torchmetrics.MeanSquaredError.
class MeanSquaredError final : public Metric {
 public:
  explicit MeanSquaredError(bool squared) : squared_(squared) {}
  std::string name() const override { return "MeanSquaredError"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  bool squared_;
  std::vector<double> sums_ = {0.0, 0.0};  // squares, elements
};

}  // namespace tutti
