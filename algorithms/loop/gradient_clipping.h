#pragma once

#include <vector>

#include "algorithms/loop/options.h"
#include "tensors/norms.h"
#include "tensors/param_view.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Clips gradients in place; parameters without a gradient are skipped. The gradients are `grad_scale` times
// the gradients that the threshold applies to. With `sum_over_ranks` (State::sum_over_shards) views may be
// shards, and all ranks call; without, asserts that each view is a whole parameter. The bits do not depend on
// how parameters are cut.
// composer.functional.apply_gradient_clipping.
void apply_gradient_clipping(const std::vector<ParamView>& views, ClippingType type, double threshold,
                             double grad_scale = 1.0, const SumOverRanks& sum_over_ranks = {});

// Clips the gradients of the global batch at every step. In Composer's mode the algorithm matches INIT too,
// without effect: Composer passes the threshold to its sharding engines at INIT.
// composer.algorithms.GradientClipping.
class GradientClipping final : public Algorithm {
 public:
  GradientClipping(ClippingType type, double threshold) : type_(type), threshold_(threshold) {}

  std::string name() const override { return "GradientClipping"; }
  bool writes_parameters() const override { return false; }
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  ClippingType type_;
  double threshold_;
};

}  // namespace tutti
