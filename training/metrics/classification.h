#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "models/metric.h"

namespace tutti {

// How often each class occurs in `labels`, added to `sums` from `begin` on; labels outside of [0, classes)
// are of no class.
void add_class_counts(std::vector<double>& sums, size_t begin, const at::Tensor& labels, int64_t classes);

// Throws UserError unless dim 1 of the outputs has `classes`, as the metric's num_classes says.
void require_classes(const std::string& metric, const at::Tensor& outputs, int64_t classes);

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
