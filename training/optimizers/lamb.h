#pragma once

#include <memory>

#include "training/optimizers/options.h"
#include "training/optimizers/partwise_optimizer.h"
#include "training/optimizers/square_sums.h"

namespace tutti {

// LAMB (You et al. 2019, arXiv:1904.00962) with the formula of timm's Lamb, which is NVIDIA's: Adam's step
// plus weight_decay * weight, times norm(weight) / norm(step) of each parameter. Gradients are not clipped
// (timm's max_grad_norm = None); the algorithm gradient_clipping clips.
//
// Norms are over whole parameters, with the same bits for shards. The step is computed twice, instead of
// kept, as a parameter's norms come before its update.
class Lamb final : public PartwiseOptimizer {
 public:
  Lamb(const std::vector<ParamView>& views, Common common, const LambOptions& options);

  const char* name() const override { return "Lamb"; }

 private:
  bool sums_over_shards() const override { return true; }
  void update(Call call, const at::Tensor& grad_scale) override;
  void update_part(const InParts::Part& part, const Call& call, size_t view) override;
  void views_changed() override;
  at::Tensor step_of(const InParts::Part& part, const Call& call, size_t view) const;
  void follow_gradient(const InParts::Part& part) const;
  double trust(size_t place) const;

  LambOptions options_;
  std::unique_ptr<SquareSums> squares_;  // of each member's weights, then of its step
};

}  // namespace tutti
