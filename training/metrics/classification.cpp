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

// Other shapes may have the same number of rows, and would be compared with the wrong targets.
void require_scores_of(const at::Tensor& target, const at::Tensor& outputs) {
  const bool fits = target.dim() > 0 && outputs.dim() == target.dim() + 1 &&
                    outputs.size(0) == target.size(0) && outputs.sizes().slice(2) == target.sizes().slice(1);
  if (fits) return;
  std::ostringstream message;
  message << "MulticlassAccuracy: expected scores [N, classes, ...] of targets [N, ...], found "
          << outputs.sizes() << " and " << target.sizes();
  throw UserError(message.str());
}

}  // namespace

void add_class_counts(std::span<double> sums, size_t begin, const at::Tensor& labels, int64_t classes) {
  const at::Tensor flat = labels.reshape(-1).to(at::kLong);
  const at::Tensor known = flat.masked_select(flat.ge(0).logical_and(flat.lt(classes)));
  const at::Tensor counts = at::bincount(known, {}, classes).to(at::kDouble).cpu();
  const double* count = counts.const_data_ptr<double>();
  for (size_t i = 0; i < static_cast<size_t>(classes); ++i) sums[begin + i] += count[i];
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
  require_scores_of(target, outputs);
  if (options_.num_classes > 0) require_classes(name(), outputs, options_.num_classes);
  if (!options_.macro && options_.top_k == 1 && are_plain_rows(outputs, target)) {
    count_rows(outputs, target);
    return;
  }
  if (!options_.macro && !target.is_cpu()) return count_on_device(outputs, target);
  const at::Tensor all = target.reshape(-1);
  const at::Tensor counted = all.ne(options_.ignore_index).nonzero().flatten();
  const at::Tensor rows = outputs.movedim(1, -1).reshape({-1, outputs.size(1)}).index_select(0, counted);
  const at::Tensor labels = all.index_select(0, counted);
  const at::Tensor guess = predicted(rows, labels, options_.top_k);
  const auto add = [&](size_t sum, const at::Tensor& of) {
    if (options_.macro)
      add_class_counts(sums_, sum * cells_, of, options_.num_classes);
    else
      sums_[sum] += static_cast<double>(of.numel());
  };
  add(0, labels.masked_select(guess.eq(labels)));
  add(1, labels);
  add(2, guess);
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

// Without the host: nothing whose size only the device knows.
void MulticlassAccuracy::count_on_device(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor all = target.reshape(-1), counted = all.ne(options_.ignore_index);
  const at::Tensor rows = outputs.movedim(1, -1).reshape({-1, outputs.size(1)});
  const at::Tensor right = predicted(rows, all, options_.top_k).eq(all).logical_and(counted);
  const at::Tensor samples = counted.sum();
  Metric::add(0, right.sum());
  Metric::add(1, samples);
  Metric::add(2, samples);
}

bool MulticlassAccuracy::occurs(size_t of_class) const {
  return sums_[cells_ + of_class] > 0 || (options_.top_k == 1 && sums_[2 * cells_ + of_class] > 0);
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
  add(0, outputs.argmax(-1).eq(target).logical_and(counted).sum());
  add(1, counted.sum());
}

void BinaryF1Score::update(const at::Tensor& outputs, const at::Tensor& target) {
  require_classes(name(), outputs, 2);
  const at::Tensor guess = outputs.argmax(1);
  const auto count = [&](size_t sum, int64_t guessed, int64_t wanted) {
    add(sum, guess.eq(guessed).logical_and(target.eq(wanted)).sum());
  };
  count(0, 1, 1);
  count(1, 0, 1);
  count(2, 1, 0);
}

double BinaryF1Score::compute() const { return sums_[0] / (sums_[0] + 0.5 * (sums_[1] + sums_[2])); }

}  // namespace tutti
