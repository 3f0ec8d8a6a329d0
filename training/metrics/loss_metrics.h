#pragma once

#include <string>
#include <utility>
#include <vector>

#include "models/loss.h"
#include "models/loss_parts.h"
#include "models/metric.h"

namespace tutti {

// The mean of a loss over all samples (or tokens); with `batch_means` the mean over batches, as in Composer.
// composer.metrics.LossMetric.
class LossMetric : public Metric {
 public:
  LossMetric(LossPtr loss, bool batch_means) : Metric(2, batch_means), loss_(std::move(loss)) {}
  std::string name() const override { return "LossMetric"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  LossPtr loss_;
};

// The mean of the model's own loss, weighed as in training. Needs the whole batch: Metric::measure.
class ModelLoss final : public Metric {
 public:
  static constexpr const char* kName = "loss";

  std::string name() const override { return kName; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  void measure(Model& model, const Batch& batch, const Outputs& outputs) override;
};

// The mean of each part of a model's loss (models/loss_parts.h): "/boxes", ...; with `has_sum` first the mean
// of their weighted sum. Needs the whole batch.
class PartLosses final : public Metric {
 public:
  PartLosses(const std::vector<LossParts::Part>& parts, bool has_sum)
      : Metric(parts.size() + 1), parts_(parts), has_sum_(has_sum) {}
  std::string name() const override { return ModelLoss::kName; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;
  void measure(Model& model, const Batch& batch, const Outputs& outputs) override;
  double compute() const override;  // the sum
  std::vector<std::string> parts() const override;
  std::vector<double> values() const override;

 private:
  double mean(std::size_t part) const { return sums_[part] / sums_.back(); }

  std::vector<LossParts::Part> parts_;
  bool has_sum_;
};

// The metric of a model's loss in evaluations.
MetricPtr loss_metric(const Model& model);

// Mean cross entropy in nats of scores [N, classes, ...] against class indices or probabilities, over all
// samples (for probabilities, over their sum). With `batch_means` the mean over batches of each batch's
// mean, as in composer.metrics.CrossEntropy.
class CrossEntropy : public Metric {
 public:
  CrossEntropy(int64_t ignore_index, bool batch_means)
      : Metric(2, batch_means), ignore_index_(ignore_index) {}
  std::string name() const override { return "CrossEntropy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t ignore_index_;
};

// Mean cross entropy per token in nats, of scores [..., vocabulary] against token ids; tokens equal to
// `ignore_index` do not count. composer.metrics.LanguageCrossEntropy.
class LanguageCrossEntropy : public Metric {
 public:
  explicit LanguageCrossEntropy(int64_t ignore_index) : ignore_index_(ignore_index) {}
  std::string name() const override { return "LanguageCrossEntropy"; }
  void update(const at::Tensor& outputs, const at::Tensor& target) override;

 private:
  int64_t ignore_index_;
};

// exp(LanguageCrossEntropy).
class LanguagePerplexity : public LanguageCrossEntropy {
 public:
  using LanguageCrossEntropy::LanguageCrossEntropy;
  std::string name() const override { return "LanguagePerplexity"; }
  double compute() const override;
};

}  // namespace tutti
