#pragma once

#include <string>
#include <vector>

#include "models/metric.h"
#include "training/metrics/score_options.h"

namespace tutti {

// How often class p, of the highest score, is predicted for targets of class t: the number "/t/p". Scores [N,
// classes, ...], class indices [N, ...]. Normalised over the predictions of a target, over the targets of a
// prediction, or over all samples. torchmetrics.classification.MulticlassConfusionMatrix.
class ConfusionMatrix : public Metric {
 public:
  explicit ConfusionMatrix(const ConfusionMatrixOptions& options);
  std::string name() const override { return "ConfusionMatrix"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;  // the part of targets on the diagonal
  std::vector<std::string> parts() const override;
  std::vector<double> values() const override;

 private:
  ConfusionMatrixOptions options_;
};

// The part of a sample's labels that are among its `top_k` highest scores, the mean over samples; scores and
// labels of 0 and 1 [N, labels]. torchmetrics.retrieval.RetrievalRecall with a query a sample.
class RetrievalRecall : public Metric {
 public:
  explicit RetrievalRecall(const RetrievalRecallOptions& options) : options_(options) {}
  std::string name() const override { return "RetrievalRecall"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override { return sums_[1] > 0 ? sums_[0] / sums_[1] : 0.0; }

 private:
  RetrievalRecallOptions options_;
};

}  // namespace tutti
