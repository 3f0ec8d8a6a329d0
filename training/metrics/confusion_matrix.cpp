#include "training/metrics/confusion_matrix.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "runtime/error.h"
#include "training/metrics/classification.h"

namespace tutti {

ConfusionMatrix::ConfusionMatrix(const ConfusionMatrixOptions& options)
    : Metric(static_cast<size_t>(options.num_classes * options.num_classes)), options_(options) {}

void ConfusionMatrix::update(const at::Tensor& outputs, const at::Tensor& target) {
  const int64_t classes = options_.num_classes;
  require_scores_of(name(), target, outputs);
  require_classes(name(), outputs, classes);
  const at::Tensor counted =
      target.ne(options_.ignore_index).logical_and(target.ge(0)).logical_and(target.lt(classes));
  add(0, class_counts(target.to(at::kLong) * classes + outputs.argmax(1), counted, classes * classes));
}

double ConfusionMatrix::compute() const {
  double hits = 0.0;
  for (size_t i = 0; i < sums_.size(); i += static_cast<size_t>(options_.num_classes) + 1) hits += sums_[i];
  return hits / std::accumulate(sums_.begin(), sums_.end(), 0.0);
}

std::vector<std::string> ConfusionMatrix::parts() const {
  std::vector<std::string> names;
  const std::vector<std::string> classes = numbered_parts(static_cast<size_t>(options_.num_classes));
  for (const std::string& target : classes)
    for (const std::string& predicted : classes) names.push_back(target + predicted);
  return names;
}

std::vector<double> ConfusionMatrix::values() const {
  const auto classes = static_cast<size_t>(options_.num_classes);
  std::vector<double> divisors(sums_.size(), 1.0);
  const double all = std::accumulate(sums_.begin(), sums_.end(), 0.0);
  std::vector<double> targets(classes), predicted(classes);
  for (size_t i = 0; i < sums_.size(); ++i) {
    targets[i / classes] += sums_[i];
    predicted[i % classes] += sums_[i];
  }
  std::vector<double> cells = sums_;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (options_.normalize == Normalize::kTrue) divisors[i] = targets[i / classes];
    if (options_.normalize == Normalize::kPred) divisors[i] = predicted[i % classes];
    if (options_.normalize == Normalize::kAll) divisors[i] = all;
    cells[i] = divisors[i] == 0.0 ? 0.0 : cells[i] / divisors[i];
  }
  return cells;
}

void RetrievalRecall::update(const at::Tensor& outputs, const at::Tensor& target) {
  if (outputs.dim() != 2 || outputs.sizes() != target.sizes()) {
    std::ostringstream message;
    message << "RetrievalRecall: expected scores and labels [N, labels], found " << outputs.sizes() << " and "
            << target.sizes();
    throw UserError(message.str());
  }
  const at::Tensor truth = target.gt(0);
  const at::Tensor highest = std::get<1>(outputs.topk(std::min(options_.top_k, outputs.size(1)), 1));
  const at::Tensor targets = truth.sum(1), hits = truth.gather(1, highest).sum(1);
  const at::Tensor counted = options_.skips_empty ? targets.gt(0) : at::ones_like(targets, at::kBool);
  add(0, hits.to(at::kDouble).div(targets.clamp_min(1)).sum());
  add(1, counted.sum());
}

}  // namespace tutti
