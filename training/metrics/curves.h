#pragma once

#include <string>
#include <vector>

#include "models/metric.h"
#include "training/metrics/score_options.h"

namespace tutti {

// The area under the curve of each label: of true against false positive rates, or of precision against
// recall (average precision). torchmetrics' with `thresholds`: the curve's points are those of equally spaced
// thresholds of the probability, so that sums describe it, on any number of ranks. Sums: for each label the
// number of positive targets between two thresholds, then of negative ones. A label without positive targets
// has an area of 0.
class BinnedArea : public Metric {
 public:
  std::string name() const override { return name_; }
  double compute() const override;
  std::vector<std::string> parts() const override;
  std::vector<double> values() const override;

 protected:
  BinnedArea(std::string name, Area area, Average average, int64_t labels, int64_t thresholds);
  // `probability` and the others: [..., labels].
  void count(const at::Tensor& probability, const at::Tensor& truth, const at::Tensor& counted);

 private:
  // Numbers of targets of a label by their bins: with as many thresholds at or below the probability.
  std::vector<double> bins(size_t label, bool positive) const;
  double area_of(const std::vector<double>& positive, const std::vector<double>& negative) const;

  std::string name_;
  Area area_;
  Average average_;
  size_t labels_;
  size_t thresholds_;
};

// For targets [N, ...] of 0 and 1; outputs as for binary_probability.
class BinaryArea : public BinnedArea {
 public:
  BinaryArea(std::string name, Area area, int64_t thresholds, int64_t ignore_index)
      : BinnedArea(std::move(name), area, Average::kMicro, 1, thresholds), ignore_index_(ignore_index) {}
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t ignore_index_;
};

// For scores and targets of 0 and 1 [N, labels, ...].
class MultilabelArea : public BinnedArea {
 public:
  struct Options {
    Average average = Average::kMacro;
    int64_t num_labels = 0;
    int64_t thresholds = 200;
    int64_t ignore_index = kIgnoredTarget;
  };

  MultilabelArea(std::string name, Area area, const Options& options)
      : BinnedArea(std::move(name), area, options.average, options.num_labels, options.thresholds),
        options_(options) {}
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  Options options_;
};

}  // namespace tutti
