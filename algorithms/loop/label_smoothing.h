#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>

#include "algorithms/loop/options.h"
#include "tensors/batch_key.h"
#include "training/engine/algorithm.h"

namespace tutti {

// (1 - smoothing) * target + smoothing / classes, float32 [N, classes, ...]. `target`: class indices [N,
// ...], of which negative ones belong to no class, or a weight for each class, as large as the logits [N,
// classes, ...]. Szegedy et al. 2015, arXiv:1512.00567; composer.functional.smooth_labels. As in PyTorch's
// cross_entropy, targets that do not count (kIgnoredIndex, or no weights) have no weights; what counts in
// part, with weights of a sum below 1, is smoothed in part.
at::Tensor smooth_labels(const at::Tensor& logits, const at::Tensor& target, double smoothing = 0.1);

// Smooths the targets for the loss alone: metrics and other algorithms see them as they were.
// composer.algorithms.LabelSmoothing.
class LabelSmoothing final : public Algorithm {
 public:
  explicit LabelSmoothing(double smoothing = 0.1, BatchKey target_key = "target")
      : smoothing_(smoothing), target_key_(std::move(target_key)) {}

  std::string name() const override { return "LabelSmoothing"; }
  Needs needs() const override { return {.excludes = {{name(), "targets are smoothed once"}}}; }
  bool try_on(const State& state, Batch& sample) const override;
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  double smoothing_;
  BatchKey target_key_;
};

}  // namespace tutti
