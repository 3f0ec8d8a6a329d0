#pragma once

#include "training/optimizers/options.h"
#include "training/optimizers/partwise_optimizer.h"

namespace tutti {

// Chen et al. 2023, arXiv:2302.06675, with the formula of google/automl and lion_pytorch: weights shrink by
// lr * weight_decay and step by lr against the sign of beta1 * exp_avg + (1 - beta1) * gradient. With
// `decoupled` llmfoundry.optim.DecoupledLionW: weights shrink by weight_decay * lr / base_lr.
class Lion final : public PartwiseOptimizer {
 public:
  Lion(const std::vector<ParamView>& views, Common common, const LionOptions& options,
       bool decoupled = false);

  const char* name() const override { return decoupled_ ? "DecoupledLionW" : "Lion"; }

 private:
  void update_part(const InParts::Part& part, const Call& call, size_t view) override;

  LionOptions options_;
  bool decoupled_;
};

}  // namespace tutti
