#pragma once

#include "models/metric.h"

namespace tutti {

// F1 of class 1 by scores [N, 2] against targets [N] of 0 and 1: the harmonic mean of precision and recall.
// composer.metrics.BinaryF1Score.
class BinaryF1Score final : public Metric {
 public:
  std::string name() const override { return "BinaryF1Score"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  std::vector<double> sums_ = {0.0, 0.0, 0.0};  // positives found, missed, and found where there are none
};

}  // namespace tutti
