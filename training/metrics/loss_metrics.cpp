#include "training/metrics/loss_metrics.h"

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>

#include <cmath>

#include "models/losses.h"

namespace tutti {

void LossMetric::update(const at::Tensor& outputs, const at::Tensor& target) {
  const double weight = batch_means_ ? share() : static_cast<double>(outputs.size(0));
  sums_[0] += weight * loss_(outputs, target).item<double>();
  sums_[1] += weight;
}

void MeanSquaredError::update(const at::Tensor& outputs, const at::Tensor& target) {
  sums_[0] += (outputs - target.reshape(outputs.sizes())).square().sum(at::kDouble).item<double>();
  sums_[1] += static_cast<double>(target.numel());
}

double MeanSquaredError::compute() const {
  const double mean = sums_[0] / sums_[1];
  return squared_ ? mean : std::sqrt(mean);
}

void CrossEntropy::update(const at::Tensor& outputs, const at::Tensor& target) {
  SoftCrossEntropyOptions options{.weight = {}, .ignore_index = ignore_index_};
  if (batch_means_) {
    sums_[0] += share() * soft_cross_entropy(outputs, target, options).item<double>();
    sums_[1] += share();
    return;
  }
  options.reduction = LossReduction::kNone;
  const at::Tensor counted = holds_indices(outputs, target) ? target.ne(ignore_index_) : target;
  sums_[0] += soft_cross_entropy(outputs, target, options).sum(at::kDouble).item<double>();
  sums_[1] += counted.sum(at::kDouble).item<double>();
}

void LanguageCrossEntropy::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor rows = outputs.reshape({-1, outputs.size(-1)});
  const at::Tensor tokens = target.reshape(-1);
  sums_[0] += index_cross_entropy(rows, tokens, LossReduction::kSum, {}, ignore_index_).item<double>();
  sums_[1] += tokens.ne(ignore_index_).sum().item<double>();
}

double LanguagePerplexity::compute() const { return std::exp(LanguageCrossEntropy::compute()); }

}  // namespace tutti
