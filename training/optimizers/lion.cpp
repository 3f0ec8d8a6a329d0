#include "training/optimizers/lion.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/mul.h>

#include <utility>

namespace tutti {

Lion::Lion(const std::vector<ParamView>& views, Common common, const LionOptions& options, bool decoupled)
    : PartwiseOptimizer(views, std::move(common)), options_(options), decoupled_(decoupled) {
  add_list("exp_avg");
  add_scratch(1);
}

void Lion::update_part(const InParts::Part& part, const Call& call, size_t) {
  at::Tensor weight = part.lists[0], grad = part.lists[1], exp_avg = part.lists[2], step = part.scratch[0];
  const double lr = lr_of(call), beta1 = options_.betas[0], beta2 = options_.betas[1];
  const double lr_part = base_lr() == 0.0 ? 1.0 : this->lr() / base_lr();
  if (call.weight_decay != 0.0) weight.mul_(1.0 - (decoupled_ ? lr_part : lr) * call.weight_decay);
  at::mul_out(step, exp_avg, at::native::wrapped_scalar_tensor(beta1)).add_(grad, 1.0 - beta1).sign_();
  weight.add_(step, -lr);
  exp_avg.mul_(beta2).add_(grad, 1.0 - beta2);
}

OptimizerPtr LionOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  require_betas(section);
  return std::make_unique<Lion>(views, common_of(section), *this);
}

OptimizerPtr DecoupledLionWOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  require_betas(section);
  return std::make_unique<Lion>(views, common_of(section), *this, /*decoupled=*/true);
}

}  // namespace tutti
