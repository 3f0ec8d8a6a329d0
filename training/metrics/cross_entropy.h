#pragma once

#include "models/metric.h"

namespace tutti {

// Mean cross entropy, in nats, of scores [N, classes, ...] against class indices or probabilities: over all
// samples (of probabilities, over their mass). With `batch_means` the mean over updates of each batch's own
// mean, as composer.metrics.CrossEntropy has it, whatever the batches' sizes.
class CrossEntropy final : public Metric {
 public:
  CrossEntropy(int64_t ignore_index, bool batch_means)
      : ignore_index_(ignore_index), batch_means_(batch_means) {}
  std::string name() const override { return "CrossEntropy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  int64_t ignore_index_;
  bool batch_means_;
  std::vector<double> sums_ = {0.0, 0.0};  // cross entropy and samples, or batch means and updates
};

}  // namespace tutti
