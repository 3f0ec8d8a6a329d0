#pragma once

#include "models/metric.h"

namespace tutti {

// Metrics of values: outputs and targets of one shape, where targets [N] stand for [N, 1]. Throw UserError
// for others.

// Mean squared difference, over all elements; the square root if `squared` is false.
// torchmetrics.MeanSquaredError.
class MeanSquaredError : public Metric {
 public:
  explicit MeanSquaredError(bool squared) : squared_(squared) {}
  std::string name() const override { return "MeanSquaredError"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;

 private:
  bool squared_;
};

// Mean absolute difference, over all elements. torchmetrics.MeanAbsoluteError.
class MeanAbsoluteError : public Metric {
 public:
  std::string name() const override { return "MeanAbsoluteError"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
};

// Coefficient of determination of each output [N, outputs], averaged: 1 - the sum of squared differences over
// the sum of squared deviations from the targets' mean. Sums for each output: targets, their squares, squared
// differences; then the number of samples. torchmetrics.R2Score.
class R2Score : public Metric {
 public:
  // `by_variance`: weighs the outputs by the variances of their targets.
  R2Score(int64_t outputs, bool by_variance)
      : Metric(3 * static_cast<size_t>(outputs) + 1), outputs_(outputs), by_variance_(by_variance) {}
  std::string name() const override { return "R2Score"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;

 private:
  int64_t outputs_;
  bool by_variance_;
};

}  // namespace tutti
