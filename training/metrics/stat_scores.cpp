#include "training/metrics/stat_scores.h"

#include <ATen/ATen.h>

#include <numeric>
#include <sstream>

#include "runtime/error.h"
#include "training/metrics/classification.h"

namespace tutti {
namespace {

double safe_quotient(double numerator, double denominator) {
  return denominator == 0.0 ? 0.0 : numerator / denominator;
}

[[noreturn]] void refuse_shapes(const std::string& metric, const char* expected, const at::Tensor& outputs,
                                const at::Tensor& target) {
  std::ostringstream message;
  message << metric << ": expected " << expected << ", found " << outputs.sizes() << " and "
          << target.sizes();
  throw UserError(message.str());
}

std::vector<int64_t> dims_but_labels(const at::Tensor& outputs) {
  std::vector<int64_t> dims{0};
  for (int64_t dim = 2; dim < outputs.dim(); ++dim) dims.push_back(dim);
  return dims;
}

}  // namespace

at::Tensor binary_scores(const std::string& metric, const at::Tensor& outputs, const at::Tensor& target) {
  if (outputs.sizes() == target.sizes()) return outputs.to(at::kFloat);
  const bool has_classes = outputs.dim() == target.dim() + 1 && outputs.size(0) == target.size(0) &&
                           outputs.sizes().slice(2) == target.sizes().slice(1);
  if (has_classes && outputs.size(1) == 1) return outputs.select(1, 0).to(at::kFloat);
  if (has_classes && outputs.size(1) == 2)
    return (outputs.select(1, 1) - outputs.select(1, 0)).to(at::kFloat);
  refuse_shapes(metric, "a score of each target, or [N, 2, ...] of targets [N, ...]", outputs, target);
}

at::Tensor label_scores(const std::string& metric, const at::Tensor& outputs, const at::Tensor& target,
                        int64_t labels) {
  if (outputs.sizes() != target.sizes() || outputs.dim() < 2)
    refuse_shapes(metric, "scores and targets [N, labels, ...]", outputs, target);
  if (outputs.size(1) != labels)
    throw UserError(metric + ": num_labels is " + std::to_string(labels) + ", but the model has " +
                    std::to_string(outputs.size(1)) + " labels");
  return outputs.to(at::kFloat);
}

StatScores::StatScores(std::string name, Score score, Average average, int64_t cells, bool skips_absent)
    : Metric(3 * static_cast<size_t>(cells)),
      name_(std::move(name)),
      score_(score),
      average_(average),
      cells_(static_cast<size_t>(cells)),
      skips_absent_(skips_absent) {}

void StatScores::add_counts(const at::Tensor& true_positives, const at::Tensor& false_positives,
                            const at::Tensor& false_negatives) {
  add(0,
      at::cat({true_positives.view(-1), false_positives.view(-1), false_negatives.view(-1)}).to(at::kDouble));
}

StatScores::Counts StatScores::counts(size_t cell) const {
  return {sums_[cell], sums_[cells_ + cell], sums_[2 * cells_ + cell]};
}

double StatScores::score_of(const Counts& c) const {
  switch (score_) {
    case Score::kPrecision:
      return safe_quotient(c.true_positives, c.true_positives + c.false_positives);
    case Score::kRecall:
      return safe_quotient(c.true_positives, c.true_positives + c.false_negatives);
    case Score::kF1:
      break;
  }
  return safe_quotient(2.0 * c.true_positives,
                       2.0 * c.true_positives + c.false_positives + c.false_negatives);
}

double StatScores::compute() const {
  Counts all;
  double sum = 0.0, weights = 0.0;
  for (size_t cell = 0; cell < cells_; ++cell) {
    const Counts cell_counts = counts(cell);
    all.true_positives += cell_counts.true_positives;
    all.false_positives += cell_counts.false_positives;
    all.false_negatives += cell_counts.false_negatives;
    const double positives = cell_counts.true_positives + cell_counts.false_negatives;
    const bool is_absent = skips_absent_ && positives + cell_counts.false_positives == 0.0;
    const double weight = average_ == Average::kWeighted ? positives : is_absent ? 0.0 : 1.0;
    sum += weight * score_of(cell_counts);
    weights += weight;
  }
  return average_ == Average::kMicro ? score_of(all) : safe_quotient(sum, weights);
}

std::vector<std::string> StatScores::parts() const {
  return average_ == Average::kNone ? numbered_parts(cells_) : Metric::parts();
}

std::vector<double> StatScores::values() const {
  if (average_ != Average::kNone) return Metric::values();
  std::vector<double> scores;
  for (size_t cell = 0; cell < cells_; ++cell) scores.push_back(score_of(counts(cell)));
  return scores;
}

BinaryScore::BinaryScore(std::string name, Score score, double threshold, int64_t ignore_index)
    : StatScores(std::move(name), score, Average::kMicro, 1, /*skips_absent=*/false),
      threshold_(threshold),
      ignore_index_(ignore_index) {}

void BinaryScore::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor guess = binary_scores(name(), outputs, target).sigmoid().gt(threshold_);
  const at::Tensor counted = target.ne(ignore_index_), truth = target.gt(0).logical_and(counted);
  const at::Tensor lie = counted.logical_and(truth.logical_not());
  add_counts(guess.logical_and(truth).sum(), guess.logical_and(lie).sum(),
             guess.logical_not().logical_and(truth).sum());
}

MulticlassScore::MulticlassScore(std::string name, Score score, Average average, int64_t num_classes,
                                 int64_t ignore_index)
    : StatScores(std::move(name), score, average, num_classes, /*skips_absent=*/true),
      num_classes_(num_classes),
      ignore_index_(ignore_index) {}

void MulticlassScore::update(const at::Tensor& outputs, const at::Tensor& target) {
  require_scores_of(name(), target, outputs);
  require_classes(name(), outputs, num_classes_);
  const at::Tensor guess = outputs.argmax(1), counted = target.ne(ignore_index_);
  const at::Tensor hits = class_counts(target, guess.eq(target).logical_and(counted), num_classes_);
  add_counts(hits, class_counts(guess, counted, num_classes_) - hits,
             class_counts(target, counted, num_classes_) - hits);
}

MultilabelScore::MultilabelScore(std::string name, Score score, const Options& options)
    : StatScores(std::move(name), score, options.average, options.num_labels, /*skips_absent=*/false),
      options_(options) {}

void MultilabelScore::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor guess =
      label_scores(name(), outputs, target, options_.num_labels).sigmoid().gt(options_.threshold);
  const at::Tensor counted = target.ne(options_.ignore_index), truth = target.gt(0).logical_and(counted);
  const at::Tensor lie = counted.logical_and(truth.logical_not());
  const std::vector<int64_t> dims = dims_but_labels(outputs);
  add_counts(guess.logical_and(truth).sum(dims), guess.logical_and(lie).sum(dims),
             guess.logical_not().logical_and(truth).sum(dims));
}

}  // namespace tutti
