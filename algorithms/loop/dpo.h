#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "algorithms/loop/options.h"
#include "algorithms/loop/teacher.h"
#include "training/engine/algorithm.h"

namespace tutti {

// The sums of the log-probabilities, in nats, of the answers of pairs (data/texts/preference_pairs.h): [N,
// 2], chosen and rejected, with gradients by `scores` [N, T, vocabulary]. Each token's is that of an
// evaluation's loss, bit for bit. `target`, `segments`: int64 [N, T]; tokens of prompts do not count.
at::Tensor answer_log_probabilities(const at::Tensor& scores, const at::Tensor& target,
                                    const at::Tensor& segments);

// -log sigmoid(beta * margin), the mean over pairs; margin: (chosen - rejected) of the policy less that of
// the reference. Both [N, 2]. Rafailov et al. 2023, arXiv:2305.18290; trl's loss_type "sigmoid".
at::Tensor dpo_loss(const at::Tensor& policy, const at::Tensor& reference, double beta);

// Direct preference optimisation in place of a language model's own loss. Logs, as trl does, the means over
// the step's pairs "rewards/chosen" and "rewards/rejected" (beta times policy less reference),
// "rewards/margins" and "rewards/accuracies" (pairs with a positive margin).
class DPO final : public Algorithm {
 public:
  explicit DPO(DPOOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "DPO"; }
  Needs needs() const override;
  void require(const State& state) const override;
  bool writes_parameters() const override { return false; }
  int64_t reductions(const State&) const override { return std::ssize(sums_); }
  void contribute(const State& state, std::span<double> numbers) override;
  void reduced(State& state, std::span<const double> sums) override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;
  std::string state() const override { return teacher_state(digest_); }
  void restore(const std::string& json) override { digest_ = digest_of_teacher_state(json); }

 private:
  void train_on_preferences(State& state);

  DPOOptions options_;
  mutable std::shared_ptr<Teacher> reference_;
  bool loaded_ = false;
  std::string digest_;               // of its weights
  at::Tensor mine_;                  // float64 [4], of this rank's microbatches
  std::array<double, 4> sums_ = {};  // of the step: pairs, chosen rewards, rejected rewards, positive margins
};

}  // namespace tutti
