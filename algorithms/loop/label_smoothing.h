#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>

#include "algorithms/loop/options.h"
#include "data/batch_key.h"
#include "training/engine/algorithm.h"

namespace tutti {

// (1 - smoothing) * target + smoothing / classes, float32 [N, classes, ...]. `target`: class indices [N,
// ...], negative for no class, or a weight for each class, in the shape of the logits [N, classes, ...].
// Szegedy et al. 2015, arXiv:1512.00567; composer.functional.smooth_labels. As in PyTorch's cross_entropy,
// ignored targets (kIgnoredTarget, or all weights 0) get no weights; targets whose weights sum to less than 1
// are smoothed in proportion. Throws UserError for a single class.
at::Tensor smooth_labels(const at::Tensor& logits, const at::Tensor& target, double smoothing = 0.1);

// Smooths the targets for the loss only: metrics and other algorithms see the original targets. With class
// weights the loss is divided by the weights of the targets' classes, as PyTorch's cross_entropy does with
// label_smoothing, and by the number of targets that MixUp or CutMix mix before or behind the smoothing, as
// cross_entropy does with probabilities; Composer always divides by their number.
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
