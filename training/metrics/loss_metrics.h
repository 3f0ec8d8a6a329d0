#pragma once

#include <functional>

#include "models/metric.h"

namespace tutti {

// A loss as a metric: composer.metrics.LossMetric. Each batch weighs by its samples; with `batch_means` all
// batches weigh the same, as in Composer.
class LossMetric final : public Metric {
 public:
  using Loss = std::function<at::Tensor(const at::Tensor& outputs, const at::Tensor& target)>;  // a scalar

  LossMetric(Loss loss, bool batch_means) : loss_(std::move(loss)), batch_means_(batch_means) {}
  std::string name() const override { return "LossMetric"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  Loss loss_;
  bool batch_means_;
  std::vector<double> sums_ = {0.0, 0.0};  // weighted losses, weights
};

// The mean over all elements of the squared difference of outputs and target, of one shape; its root where
// `squared` is false. torchmetrics.MeanSquaredError.
class MeanSquaredError final : public Metric {
 public:
  explicit MeanSquaredError(bool squared) : squared_(squared) {}
  std::string name() const override { return "MeanSquaredError"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  bool squared_;
  std::vector<double> sums_ = {0.0, 0.0};  // squares, elements
};

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

// Mean cross entropy a token, in nats, of scores [..., vocabulary] against token numbers; tokens of
// `ignore_index` do not count. composer.metrics.LanguageCrossEntropy.
class LanguageCrossEntropy : public Metric {
 public:
  explicit LanguageCrossEntropy(int64_t ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "LanguageCrossEntropy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  double compute() const override;
  std::vector<double>& sums() override { return sums_; }

 private:
  int64_t ignore_index_;
  std::vector<double> sums_ = {0.0, 0.0};  // cross entropy, tokens
};

// e to it.
class LanguagePerplexity final : public LanguageCrossEntropy {
 public:
  using LanguageCrossEntropy::LanguageCrossEntropy;
  std::string name() const override { return "LanguagePerplexity"; }
  double compute() const override;
};

}  // namespace tutti
