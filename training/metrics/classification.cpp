#include "training/metrics/classification.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "runtime/error.h"

namespace tutti {
namespace {

// The predicted class of each row of scores: the target if it is among the highest, else the highest.
at::Tensor predicted(const at::Tensor& rows, const at::Tensor& target, int64_t top_k) {
  if (top_k == 1) return rows.argmax(1);
  const at::Tensor highest = std::get<1>(rows.topk(std::min(top_k, rows.size(1)), 1));
  return at::where(highest.eq(target.unsqueeze(1)).any(1), target, highest.select(1, 0));
}

// As argmax: the first of the highest; NaN counts as highest.
int64_t highest(const float* scores, int64_t classes) {
  int64_t best = 0;
  for (int64_t c = 1; c < classes && !std::isnan(scores[best]); ++c)
    if (scores[c] > scores[best] || std::isnan(scores[c])) best = c;
  return best;
}

bool are_plain_rows(const at::Tensor& outputs, const at::Tensor& target) {
  return outputs.dim() == 2 && target.dim() == 1 && outputs.size(0) == target.size(0) &&
         outputs.is_contiguous() && outputs.is_cpu() && outputs.scalar_type() == at::kFloat &&
         target.is_contiguous() && target.is_cpu() && target.scalar_type() == at::kLong;
}

}  // namespace

// Labels that do not count fall behind the last class.
at::Tensor class_counts(const at::Tensor& labels, const at::Tensor& counted, int64_t classes) {
  const at::Tensor flat = labels.reshape(-1).to(at::kLong);
  const at::Tensor known = flat.ge(0).logical_and(flat.lt(classes)).logical_and(counted.reshape(-1));
  const at::Tensor places = at::where(known, flat, classes);
  const at::Tensor ones = at::ones_like(places, at::kDouble);
  return at::zeros({classes + 1}, ones.options()).scatter_add_(0, places, ones).narrow(0, 0, classes);
}

void require_scores_of(const std::string& metric, const at::Tensor& target, const at::Tensor& outputs) {
  const bool fits = target.dim() > 0 && outputs.dim() == target.dim() + 1 &&
                    outputs.size(0) == target.size(0) && outputs.sizes().slice(2) == target.sizes().slice(1);
  if (fits) return;
  std::ostringstream message;
  message << metric << ": expected scores [N, classes, ...] of targets [N, ...], found " << outputs.sizes()
          << " and " << target.sizes();
  throw UserError(message.str());
}

at::Tensor scores_of_tokens(const std::string& metric, const at::Tensor& target, const at::Tensor& outputs) {
  if (outputs.dim() == target.dim() + 1 && outputs.sizes().slice(0, target.dim()) == target.sizes())
    return outputs;
  require_scores_of(metric, target, outputs);
  return outputs.movedim(1, -1);
}

void require_classes(const std::string& metric, const at::Tensor& outputs, int64_t classes) {
  if (outputs.size(1) == classes) return;
  throw UserError(metric + ": num_classes is " + std::to_string(classes) + ", but the model has scores of " +
                  std::to_string(outputs.size(1)) + " classes");
}

MulticlassAccuracy::MulticlassAccuracy(const Options& options)
    : Metric(options.macro ? 3 * static_cast<size_t>(options.num_classes) : 3),
      options_(options),
      cells_(sums_.size() / 3) {}

void MulticlassAccuracy::update(const at::Tensor& outputs, const at::Tensor& target) {
  require_scores_of(name(), target, outputs);
  if (options_.num_classes > 0) require_classes(name(), outputs, options_.num_classes);
  if (!options_.macro && options_.top_k == 1 && are_plain_rows(outputs, target)) {
    count_rows(outputs, target);
    return;
  }
  count(outputs, target);
}

// The common case without tensor operations, since training does it at every step.
void MulticlassAccuracy::count_rows(const at::Tensor& outputs, const at::Tensor& target) {
  const auto* labels = target.const_data_ptr<int64_t>();
  const auto* scores = outputs.const_data_ptr<float>();
  for (int64_t row = 0; row < target.size(0); ++row, scores += outputs.size(1)) {
    if (labels[row] == options_.ignore_index) continue;
    sums_[0] += highest(scores, outputs.size(1)) == labels[row] ? 1.0 : 0.0;
    sums_[1] += 1.0;
    sums_[2] += 1.0;
  }
}

// Nothing whose size only a device knows, so that the host does not wait.
void MulticlassAccuracy::count(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor all = target.reshape(-1), counted = all.ne(options_.ignore_index);
  const at::Tensor rows = outputs.movedim(1, -1).reshape({-1, outputs.size(1)});
  const at::Tensor guess = predicted(rows, all, options_.top_k);
  const auto add = [&](size_t sum, const at::Tensor& of, const at::Tensor& where) {
    if (options_.macro)
      Metric::add(sum * cells_, class_counts(of, where, options_.num_classes));
    else
      Metric::add(sum, where.sum());
  };
  add(0, all, guess.eq(all).logical_and(counted));
  add(1, all, counted);
  add(2, guess, counted);
}

bool MulticlassAccuracy::occurs(size_t index) const {
  return sums_[cells_ + index] > 0 || (options_.top_k == 1 && sums_[2 * cells_ + index] > 0);
}

double MulticlassAccuracy::compute() const {
  if (!options_.macro) return sums_[1] > 0 ? sums_[0] / sums_[1] : 0.0;
  double scores = 0.0;
  double classes = 0.0;
  for (size_t i = 0; i < cells_; ++i) {
    if (!occurs(i)) continue;
    if (sums_[i] > 0) scores += sums_[i] / sums_[cells_ + i];
    classes += 1.0;
  }
  return classes > 0 ? scores / classes : 0.0;
}

void MaskedAccuracy::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor counted = target.ne(ignore_index_);
  add(0, scores_of_tokens(name(), target, outputs).argmax(-1).eq(target).logical_and(counted).sum());
  add(1, counted.sum());
}

}  // namespace tutti
