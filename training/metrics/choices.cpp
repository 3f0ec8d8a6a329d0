#include "training/metrics/choices.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "data/texts/task_tokens.h"
#include "models/losses.h"
#include "runtime/error.h"
#include "tensors/ignored_target.h"

namespace tutti {
namespace {

constexpr std::size_t kNumbers = 7;  // of a choice

// A choice as the sums hold it; the question counts from 1.
struct MeasuredChoice {
  double question, choice, choices, is_right, characters, bytes, log_probability;

  double score(ChoiceLength length) const {
    if (length == ChoiceLength::kNone) return log_probability;
    return log_probability / (length == ChoiceLength::kBytes ? bytes : characters);
  }
};

}  // namespace

at::Tensor choice_log_probabilities(const at::Tensor& scores, const Batch& batch) {
  const TensorTree* targets = batch.find(kChoiceTargets);
  if (!targets) throw UserError("the data have no choices; data of kind = \"choices\" have");
  const at::Tensor target = targets->tensor();
  if (scores.dim() != 3 || scores.size(1) != target.size(1))
    throw UserError("expected scores of the next token for each token, [N, " +
                    std::to_string(target.size(1)) + ", vocabulary]; the model's are " +
                    shape_text(scores.sizes()));
  const at::Tensor counted = target.reshape(-1).ne(kIgnoredTarget).nonzero().squeeze(1);
  const at::Tensor losses =
      index_cross_entropy(scores.reshape({-1, scores.size(-1)}).index_select(0, counted),
                          target.reshape(-1).index_select(0, counted), LossReduction::kNone);
  return at::zeros({target.size(0)}, losses.options().dtype(at::kDouble))
      .index_add(0, counted.floor_divide(target.size(1)), losses.to(at::kDouble))
      .neg();
}

void ChoiceAccuracy::update(const at::Tensor&, const at::Tensor&) {
  TUTTI_ASSERT(false, "choices are measured by their whole batch");
}

void ChoiceAccuracy::measure(Model&, const Batch& batch, const Outputs& outputs) {
  const at::Tensor sums = choice_log_probabilities(outputs.tensor(), batch);
  at::Tensor facts = batch["choice"].to(at::kDouble);
  facts.select(1, 0).add_(1);
  add_late(0, at::cat({facts, sums.unsqueeze(1)}, 1).reshape(-1));
}

void ChoiceAccuracy::take(std::size_t, std::span<const double> all) {
  sums_.insert(sums_.end(), all.begin(), all.end());
}

void ChoiceAccuracy::reset() {
  Metric::reset();
  sums_.clear();
}

void ChoiceAccuracy::gather(const SumOverRanks& sum, int rank, int world) {
  sums();  // with what a device has added
  const at::Tensor counts = at::zeros({world}, at::kDouble);
  counts[rank] = static_cast<double>(sums_.size());
  if (sum) sum(counts);
  std::vector<double> gathered(static_cast<std::size_t>(counts.sum().item<double>()), 0.0);
  std::ranges::copy(sums_, gathered.begin() + counts.narrow(0, 0, rank).sum().item<int64_t>());
  sums_ = std::move(gathered);
}

ChoiceAccuracy::Counts ChoiceAccuracy::counts() const {
  std::map<double, std::vector<MeasuredChoice>> questions;
  for (std::size_t at = 0; at + kNumbers <= sums_.size(); at += kNumbers) {
    const double* n = &sums_[at];
    questions[n[0]].push_back({n[0], n[1], n[2], n[3], n[4], n[5], n[6]});
  }
  Counts counts;
  for (auto& [number, choices] : questions) {
    if (std::ssize(choices) < static_cast<int64_t>(choices.front().choices)) {
      ++counts.left_out;
      continue;
    }
    std::ranges::sort(choices, {}, &MeasuredChoice::choice);
    const auto likeliest = std::ranges::max_element(
        choices, {}, [&](const MeasuredChoice& choice) { return choice.score(length_); });
    ++counts.questions;
    counts.right += likeliest->is_right > 0 ? 1 : 0;
  }
  return counts;
}

double ChoiceAccuracy::compute() const {
  const Counts all = counts();
  return static_cast<double>(all.right) / static_cast<double>(all.questions);
}

std::string ChoiceAccuracy::note() const {
  const Counts all = counts();
  if (all.left_out == 0) return "";
  return measured_name() + " leaves out " + std::to_string(all.left_out) +
         " questions of which not all choices were measured; without subset_num_batches all are";
}

}  // namespace tutti
