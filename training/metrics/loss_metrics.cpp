#include "training/metrics/loss_metrics.h"

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>

#include <cmath>

#include "models/losses.h"
#include "models/model.h"
#include "runtime/error.h"
#include "training/metrics/classification.h"

namespace tutti {

void LossMetric::update(const at::Tensor& outputs, const at::Tensor& target) {
  if (loss_->classes() > 0 && outputs.dim() > 1 && outputs.size(1) != loss_->classes())
    throw UserError("LossMetric: the loss has " + std::to_string(loss_->classes()) +
                    " weights, but the model has " + std::to_string(outputs.size(1)) + " outputs a sample");
  const double items = loss_->items(target);
  if (items == 0) return;
  add(0, loss_->mean(outputs, target).to(at::kDouble) * items);
  current()[1] += items;
}

void ModelLoss::update(const at::Tensor&, const at::Tensor&) {
  TUTTI_ASSERT(false, "the loss of a model is of its whole batch");
}

void ModelLoss::measure(Model& model, const Batch& batch, const Outputs& outputs) {
  const double weight = model.loss_weight(batch);
  if (weight == 0) return;
  add(0, mean_loss(model, outputs, batch).to(at::kDouble) * weight);
  sums_[1] += weight;
}

void PartLosses::update(const at::Tensor&, const at::Tensor&) {
  TUTTI_ASSERT(false, "the losses of a model are of its whole batch");
}

void PartLosses::measure(Model& model, const Batch& batch, const Outputs& outputs) {
  const double weight = model.loss_weight(batch);
  if (weight == 0) return;
  const auto means = dynamic_cast<const LossParts&>(model).part_means(outputs, batch);
  TUTTI_ASSERT(means.size() == parts_.size(), "the loss has other parts than before");
  for (std::size_t i = 0; i < means.size(); ++i) add(i, means[i].to(at::kDouble) * weight);
  sums_.back() += weight;
}

double PartLosses::compute() const {
  double sum = 0.0;
  for (std::size_t i = 0; i < parts_.size(); ++i) sum += parts_[i].weight * mean(i);
  return sum;
}

std::vector<std::string> PartLosses::parts() const {
  std::vector<std::string> names;
  if (has_sum_) names.emplace_back();
  for (const LossParts::Part& part : parts_) names.push_back("/" + part.name);
  return names;
}

std::vector<double> PartLosses::values() const {
  std::vector<double> values;
  if (has_sum_) values.push_back(compute());
  for (std::size_t i = 0; i < parts_.size(); ++i) values.push_back(mean(i));
  return values;
}

MetricPtr loss_metric(const Model& model) {
  const auto* many = dynamic_cast<const LossParts*>(&model);
  if (!many || many->loss_parts().empty()) return std::make_unique<ModelLoss>();
  return std::make_unique<PartLosses>(many->loss_parts(), /*has_sum=*/true);
}

void CrossEntropy::update(const at::Tensor& outputs, const at::Tensor& target) {
  const SoftCrossEntropyOptions options{
      .weight = {}, .ignore_index = ignore_index_, .reduction = LossReduction::kNone};
  const at::Tensor counted = holds_indices(outputs, target) ? target.ne(ignore_index_) : target;
  add(0, soft_cross_entropy(outputs, target, options).sum(at::kDouble));
  add(1, counted.sum(at::kDouble));
}

void LanguageCrossEntropy::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor scores = scores_of_tokens(name(), target, outputs);
  const at::Tensor rows = scores.reshape({-1, scores.size(-1)});
  const at::Tensor tokens = target.reshape(-1);
  add(0, index_cross_entropy(rows, tokens, LossReduction::kSum, {}, ignore_index_));
  add(1, tokens.ne(ignore_index_).sum());
}

double LanguagePerplexity::compute() const { return std::exp(LanguageCrossEntropy::compute()); }

}  // namespace tutti
