#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/metric.h"
#include "training/metrics/score_options.h"

namespace tutti {

// The counts for an area under curves.
struct AreaOptions {
  Area area = Area::kRoc;
  Average average = Average::kMicro;
  int64_t labels = 1;
  int64_t thresholds = 0;  // 0: the curve through all scores
};

// The area under the curve of each label: of true against false positive rates, or of precision against
// recall (average precision). torchmetrics' areas. A label without positive targets has an area of 0, and, of
// rates, a label without negative targets; the macro mean of average precision and weighted means leave out
// labels without positive targets. `note` names labels that are left out or count 0.
//
// Without thresholds the curve goes through all scores, which `gather` collects; equal scores are one point.
// Where there are more than kMostScores, each label's scores are counted in 256 to 65,536 bins of
// floating-point numbers, which are the points then. Sums: 0, and for each score a code (1 + truth + 2 label,
// or 0) and the score; or a number above 0, and for each bin the number of positive, then of negative
// targets.
//
// With thresholds the points are at equally spaced probabilities. Sums: for each label the number of positive
// targets between two thresholds, then of negative targets.
class AreaUnderCurve : public Metric {
 public:
  static constexpr int64_t kMostScores = 1 << 20;  // of all labels and ranks

  std::string name() const override { return name_; }
  double compute() const override;
  std::vector<std::string> parts() const override;
  std::vector<double> values() const override;
  void reset() override;
  void fix_size() override;
  bool keeps_measurements() const override { return by_rank(); }
  void gather(const SumOverRanks& sum, int rank, int world) override;
  std::string note() const override;

 protected:
  AreaUnderCurve(std::string name, const AreaOptions& options);
  // `scores`, of which the higher are likelier true, and the other tensors: [..., labels].
  void count(const at::Tensor& scores, const at::Tensor& truth, const at::Tensor& counted);
  void take(std::size_t sum, std::span<const double> all) override;

 private:
  // The targets of a label at equal scores, or between two thresholds.
  struct Point {
    double positive = 0.0, negative = 0.0;
  };
  // Of a label, from the highest scores on, and the number of all its targets.
  struct Curve {
    std::vector<Point> points;
    Point all;
  };

  bool by_rank() const { return options_.thresholds == 0; }
  bool is_binned() const { return !by_rank() || is_fixed_ || sums_[0] > 0; }
  std::size_t bins() const;
  void add_score(std::size_t label, bool truth, double score);
  void fold();  // scores into bins
  Curve curve(std::span<const double> positive, std::span<const double> negative) const;
  std::vector<Curve> curves_of_bins() const;
  std::vector<Curve> curves_of_scores(bool together) const;
  std::vector<Curve> curves() const;
  double area_of(const Curve& curve) const;
  bool leaves_out() const;
  double weight_of(const Curve& curve) const;  // in the mean
  bool is_in_mean(const Curve& curve) const;
  std::string undefined_note() const;

  std::string name_;
  AreaOptions options_;
  bool is_fixed_ = false;  // the number of sums
};

// For targets [N, ...] of 0 and 1; outputs as for binary_scores.
class BinaryArea : public AreaUnderCurve {
 public:
  BinaryArea(std::string name, Area area, int64_t thresholds, int64_t ignore_index)
      : AreaUnderCurve(std::move(name), {.area = area, .thresholds = thresholds}),
        ignore_index_(ignore_index) {}
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t ignore_index_;
};

// For scores [N, classes, ...] and classes [N, ...]: each class against all other classes, by its
// probability.
class MulticlassArea : public AreaUnderCurve {
 public:
  MulticlassArea(std::string name, const AreaOptions& options, int64_t ignore_index)
      : AreaUnderCurve(std::move(name), options), classes_(options.labels), ignore_index_(ignore_index) {}
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t classes_, ignore_index_;
};

// For scores and targets of 0 and 1 [N, labels, ...].
class MultilabelArea : public AreaUnderCurve {
 public:
  MultilabelArea(std::string name, const AreaOptions& options, int64_t ignore_index)
      : AreaUnderCurve(std::move(name), options), labels_(options.labels), ignore_index_(ignore_index) {}
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t labels_, ignore_index_;
};

}  // namespace tutti
