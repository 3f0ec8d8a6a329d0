#include "training/optimizers/nadam.h"

#include <ATen/ScalarOps.h>
#include <ATen/ops/div.h>

#include <cmath>
#include <utility>

namespace tutti {

NAdam::NAdam(const std::vector<ParamView>& views, Common common, const NAdamOptions& options)
    : PartwiseOptimizer(views, std::move(common)), options_(options) {
  add_list("exp_avg");
  add_list("exp_avg_sq");
  add_scratch(2);
}

double NAdam::momentum(int64_t step) const {
  return options_.betas[0] *
         (1.0 - 0.5 * std::pow(0.96, static_cast<double>(step) * options_.momentum_decay));
}

// From the last step's, which most parameters share; a restored or younger parameter begins anew.
double NAdam::product_of_momenta(int64_t step) {
  if (step < steps_of_product_) {
    steps_of_product_ = 0;
    product_ = 1.0;
  }
  while (steps_of_product_ < step && product_ > 0.0) product_ *= momentum(++steps_of_product_);
  steps_of_product_ = step;
  return product_;
}

void NAdam::update(Call call, const at::Tensor& grad_scale) {
  products_.resize(view_count());
  for (const size_t i : call.members) products_[i] = product_of_momenta(steps(i));
  PartwiseOptimizer::update(std::move(call), grad_scale);
}

void NAdam::update_part(const InParts::Part& part, const Call& call, size_t view) {
  at::Tensor weight = part.lists[0], exp_avg = part.lists[2], exp_avg_sq = part.lists[3];
  at::Tensor root = part.scratch[0];
  const int64_t step = steps(view);
  const double lr = lr_of(call), beta1 = options_.betas[0], beta2 = options_.betas[1];
  const double now = momentum(step), next = momentum(step + 1), product = products_[view];
  if (options_.decoupled_weight_decay && call.weight_decay != 0.0) weight.mul_(1.0 - lr * call.weight_decay);
  const double coupled = options_.decoupled_weight_decay ? 0.0 : call.weight_decay;
  const at::Tensor grad = descended(part, coupled, options_.maximize, part.scratch[1]);
  exp_avg.lerp_(grad, 1.0 - beta1);
  exp_avg_sq.mul_(beta2).addcmul_(grad, grad, 1.0 - beta2);
  at::div_out(root, exp_avg_sq,
              at::native::wrapped_scalar_tensor(1.0 - std::pow(beta2, static_cast<double>(step))));
  root.sqrt_().add_(options_.eps);
  weight.addcdiv_(grad, root, -lr * (1.0 - now) / (1.0 - product));
  weight.addcdiv_(exp_avg, root, -lr * next / (1.0 - product * next));
}

OptimizerPtr NAdamOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  require_betas(section);
  return std::make_unique<NAdam>(views, common_of(section), *this);
}

}  // namespace tutti
