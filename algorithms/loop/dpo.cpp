#include "algorithms/loop/dpo.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <utility>

#include "data/dataset.h"
#include "data/texts/preference_pairs.h"
#include "models/losses.h"
#include "models/zoo/causal_lm.h"
#include "runtime/error.h"
#include "tensors/memory/torch_error.h"
#include "training/state.h"

namespace tutti {

at::Tensor answer_log_probabilities(const at::Tensor& scores, const at::Tensor& target,
                                    const at::Tensor& segments) {
  const at::Tensor losses = index_cross_entropy(scores.transpose(1, 2), target, LossReduction::kNone);
  const auto sum_of = [&](int64_t segment) { return (losses * segments.eq(segment)).sum(1).neg(); };
  return at::stack({sum_of(kChosenSegment), sum_of(kRejectedSegment)}, 1);
}

at::Tensor dpo_loss(const at::Tensor& policy, const at::Tensor& reference, double beta) {
  const at::Tensor rewards = policy - reference;
  return at::log_sigmoid((rewards.select(1, 0) - rewards.select(1, 1)) * beta).neg().mean();
}

Needs DPO::needs() const {
  const std::string reason = "each of the two has a loss of its own, and DPO's is the only one";
  return {.last = true, .excludes = {{"Distillation", reason}, {name(), reason}}};
}

void DPO::require(const State& state) const {
  if (!dynamic_cast<const CausalLm*>(state.model.get()))
    fail("expected a language model: kind = \"gpt\", \"llama\" or \"hf\"");
  if (!state.dataset || !state.dataset->spec().shapes.contains(kPairs))
    fail(
        "the training data are no pairs of answers; [data.train] kind = \"text\" reads pairs by chosen_field "
        "and rejected_field");
  const bool is_start = !options_.reference.path.starts_with("algorithms");
  if (!reference_)
    reference_ = make_teacher(options_.reference, state,
                              is_start ? TeacherWeights::kAsSaved : TeacherWeights::kAsEvaluated);
  if (!dynamic_cast<const CausalLm*>(&reference_->model()))
    options_.reference.fail("expected a language model");
  if (const int64_t tokens = reference_->model().vocabulary(); tokens != state.model->vocabulary())
    options_.reference.fail(std::to_string(tokens) + " tokens, and the model has " +
                            std::to_string(state.model->vocabulary()) + "; expected the same tokens");
}

bool DPO::match(Event event, const State&) const {
  return event == Event::kFitStart || event == Event::kBeforeTrainBatch || event == Event::kBeforeBackward ||
         event == Event::kBatchEnd;
}

void DPO::train_on_preferences(State& state) {
  const Batch& batch = state.batch;
  const auto answers = [&batch](const Outputs& outputs) {
    return answer_log_probabilities(outputs.tensor(), batch["target"], batch["segments"]);
  };
  const at::Tensor policy = answers(state.outputs), reference = answers(reference_->forward(batch));
  state.loss = dpo_loss(policy, reference, options_.beta);
  const at::Tensor rewards = ((policy - reference) * options_.beta).detach().to(at::kDouble);
  const at::Tensor chosen = rewards.select(1, 0), rejected = rewards.select(1, 1);
  const at::Tensor sums = at::stack(
      {at::ones_like(chosen).sum(), chosen.sum(), rejected.sum(), chosen.gt(rejected).to(at::kDouble).sum()});
  mine_ = mine_.defined() ? mine_ + sums : sums;
}

void DPO::apply(Event event, State& state, Logger& logger) {
  if (event == Event::kFitStart) {
    if (!std::exchange(loaded_, true)) reference_->load(state, digest_);
  } else if (event == Event::kBeforeTrainBatch) {
    mine_ = at::Tensor();
  } else if (event == Event::kBeforeBackward) {
    train_on_preferences(state);
  } else if (const auto [pairs, chosen, rejected, positive] = sums_; pairs > 0) {
    logger.log_metrics({{"rewards/chosen", chosen / pairs},
                        {"rewards/rejected", rejected / pairs},
                        {"rewards/margins", (chosen - rejected) / pairs},
                        {"rewards/accuracies", positive / pairs}});
  }
}

void DPO::contribute(const State&, std::span<double> numbers) {
  if (!mine_.defined()) return;
  const at::Tensor mine = std::exchange(mine_, at::Tensor()).cpu();
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = mine[static_cast<int64_t>(i)].item<double>();
}

void DPO::reduced(State&, std::span<const double> sums) { std::ranges::copy(sums, sums_.begin()); }

AlgorithmPtr DPOOptions::make(const Setting&) const { return std::make_shared<DPO>(*this); }

}  // namespace tutti
