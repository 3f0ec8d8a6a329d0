#pragma once

#include <string>
#include <vector>

#include "models/metric.h"
#include "training/metrics/score_options.h"

namespace tutti {

// The score of class 1 of each binary target, whose sigmoid is the probability: scores of the targets' shape
// or [N, 1, ...], or the difference of the scores [N, 2, ...]. Float32, of the targets' shape. Throws
// UserError for other shapes.
at::Tensor binary_scores(const std::string& metric, const at::Tensor& outputs, const at::Tensor& target);

// Scores [N, labels, ...], float32. Throws UserError unless the targets have their shape.
at::Tensor label_scores(const std::string& metric, const at::Tensor& outputs, const at::Tensor& target,
                        int64_t labels);

// F1, precision or recall from counts of true positives, false positives and false negatives, the sums, for
// each class or label. A quotient of zeros is 0. torchmetrics', where an average over classes skips classes
// that neither occur nor are predicted; an average over labels does not.
class StatScores : public Metric {
 public:
  std::string name() const override { return name_; }
  double compute() const override;
  std::vector<std::string> parts() const override;
  std::vector<double> values() const override;

 protected:
  StatScores(std::string name, Score score, Average average, int64_t cells, bool skips_absent);
  // Adds counts of each cell.
  void add_counts(const at::Tensor& true_positives, const at::Tensor& false_positives,
                  const at::Tensor& false_negatives);

 private:
  struct Counts {
    double true_positives = 0, false_positives = 0, false_negatives = 0;
  };
  Counts counts(size_t cell) const;
  double score_of(const Counts& counts) const;

  std::string name_;
  Score score_;
  Average average_;
  size_t cells_;
  bool skips_absent_;
};

// Of class 1, for targets [N, ...] of 0 and 1; outputs as for binary_scores.
class BinaryScore : public StatScores {
 public:
  BinaryScore(std::string name, Score score, double threshold, int64_t ignore_index);
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  double threshold_;
  int64_t ignore_index_;
};

// Of the class with the highest score, for scores [N, classes, ...] and class indices [N, ...].
class MulticlassScore : public StatScores {
 public:
  MulticlassScore(std::string name, Score score, Average average, int64_t num_classes, int64_t ignore_index);
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t num_classes_;
  int64_t ignore_index_;
};

// Of several labels, for scores and targets of 0 and 1 [N, labels, ...].
class MultilabelScore : public StatScores {
 public:
  struct Options {
    Average average = Average::kMacro;
    int64_t num_labels = 0;
    double threshold = 0.5;
    int64_t ignore_index = kIgnoredTarget;
  };

  MultilabelScore(std::string name, Score score, const Options& options);
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  Options options_;
};

}  // namespace tutti
