#pragma once

#include "training/optimizers/options.h"
#include "training/optimizers/partwise_optimizer.h"

namespace tutti {

// Chen et al. 2023, arXiv:2302.06675, with the formula of google/automl and lion_pytorch: weights shrink by
// lr * weight_decay and step by lr against the sign of beta1 * exp_avg + (1 - beta1) * gradient.
class Lion final : public PartwiseOptimizer {
 public:
  Lion(const std::vector<ParamView>& views, Common common, const LionOptions& options);

  const char* name() const override { return "Lion"; }

 private:
  void update_part(const InParts::Part& part, const Call& call, size_t view) override;

  LionOptions options_;
};

}  // namespace tutti
