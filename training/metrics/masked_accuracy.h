#pragma once

#include "models/metric.h"

namespace tutti {

// The part of the targets [...] whose score is the highest of [..., classes]; targets of `ignore_index` do
// not count. composer.metrics.MaskedAccuracy.
class MaskedAccuracy final : public Metric {
 public:
  explicit MaskedAccuracy(int64_t ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "MaskedAccuracy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  int64_t ignore_index_;
  std::vector<double> sums_ = {0.0, 0.0};  // right, all
};

}  // namespace tutti
