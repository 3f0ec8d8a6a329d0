#pragma once

#include <vector>

#include "tensors/param_view.h"
#include "training/engine/algorithm.h"

namespace tutti {

enum class ClippingType {
  kNorm,     // all gradients times min(1, threshold / (norm + 1e-6)), of their common L2 norm
  kValue,    // each number into [-threshold, threshold]
  kAdaptive  // each unit's gradient to a norm of threshold x its weights': Brock et al. 2021,
             // arXiv:2102.06171; a unit is a slice of dim 0, and a parameter of fewer than two dims is one
};

// Clips the gradients of whole parameters in place; those that have none are left out. They are `grad_scale`
// times the gradients that the threshold is meant for. composer.functional.apply_gradient_clipping.
void apply_gradient_clipping(const std::vector<ParamView>& views, ClippingType type, double threshold,
                             double grad_scale = 1.0);

// Clips the gradients of every step, once they are those of the whole global batch.
// composer.algorithms.GradientClipping.
class GradientClipping final : public Algorithm {
 public:
  GradientClipping(ClippingType type, double threshold) : type_(type), threshold_(threshold) {}

  std::string name() const override { return "GradientClipping"; }
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  ClippingType type_;
  double threshold_;
};

}  // namespace tutti
