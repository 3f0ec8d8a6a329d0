#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <utility>

#include "algorithms/loop/options.h"
#include "algorithms/loop/teacher.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Hinton et al. 2015, arXiv:1503.02531: temperature^2 times the Kullback-Leibler divergence of the softmax of
// scores / temperature from the teacher's, in nats, the mean over items weighted by `counted`. Scores [...,
// classes], counted [...]; a scalar, with gradients by `scores`. As torch's kl_div.
at::Tensor distillation_loss(const at::Tensor& scores, const at::Tensor& teacher_scores,
                             const at::Tensor& counted, double temperature);

// Trains the model on (1 - weight) its own loss + weight the divergence from a teacher's scores for the same
// batch, with other algorithms' changes. Targets that are ignored do not count in either.
class Distillation final : public Algorithm {
 public:
  explicit Distillation(DistillationOptions options) : options_(std::move(options)) {}

  std::string name() const override { return "Distillation"; }
  Needs needs() const override { return {.last = true}; }
  void require(const State& state) const override;
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;
  std::string state() const override { return teacher_state(digest_); }
  void restore(const std::string& json) override { digest_ = digest_of_teacher_state(json); }

 private:
  Teacher& teacher(const State& state) const;

  DistillationOptions options_;
  mutable std::shared_ptr<Teacher> teacher_;  // as soon as it is asked for
  bool loaded_ = false;
  std::string digest_;  // of its weights
};

}  // namespace tutti
