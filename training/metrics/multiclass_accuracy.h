#pragma once

#include "models/metric.h"

namespace tutti {

// How often the target is among the `top_k` highest of the scores (dim 1 of [N, classes, ...]): torchmetrics'
// MulticlassAccuracy. Over all samples, or as the mean over the classes that occur, in the targets or, with
// top_k 1, in the predictions. Throws UserError where targets are not [N, ...].
class MulticlassAccuracy final : public Metric {
 public:
  struct Options {
    bool macro = false;       // the mean over classes
    int64_t num_classes = 0;  // with macro required; else 0 = any
    int64_t top_k = 1;
    int64_t ignore_index = -100;  // targets that do not count
  };

  explicit MulticlassAccuracy(const Options& options);
  std::string name() const override { return "MulticlassAccuracy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  void count_rows(const at::Tensor& outputs, const at::Tensor& target);
  bool occurs(size_t of_class) const;

  Options options_;
  size_t cells_;              // one, or one a class
  std::vector<double> sums_;  // in cells each: right, targets, predictions
};

}  // namespace tutti
