#include "training/optimizers/rmsprop.h"

#include <ATen/ops/addcmul.h>
#include <ATen/ops/sqrt.h>

#include <utility>

namespace tutti {

RmsProp::RmsProp(const std::vector<ParamView>& views, Common common, const RmsPropOptions& options)
    : PartwiseOptimizer(views, std::move(common)), options_(options) {
  add_list("square_avg");
  if (options.momentum > 0.0) add_list("momentum_buffer");
  if (options.centered) add_list("grad_avg");
  add_scratch(2);
}

void RmsProp::update_part(const InParts::Part& part, const Call& call, size_t) {
  at::Tensor weight = part.lists[0], square_avg = part.lists[2], root = part.scratch[0];
  const at::Tensor grad = descended(part, call.weight_decay, options_.maximize, part.scratch[1]);
  square_avg.mul_(options_.alpha).addcmul_(grad, grad, 1.0 - options_.alpha);
  if (options_.centered) {
    at::Tensor grad_avg = part.lists.back();
    grad_avg.lerp_(grad, 1.0 - options_.alpha);
    at::addcmul_out(root, square_avg, grad_avg, grad_avg, -1.0).sqrt_();
  } else {
    at::sqrt_out(root, square_avg);
  }
  root.add_(options_.eps);
  if (options_.momentum > 0.0) {
    at::Tensor momentum = part.lists[3];
    momentum.mul_(options_.momentum).addcdiv_(grad, root);
    weight.add_(momentum, -lr_of(call));
  } else {
    weight.addcdiv_(grad, root, -lr_of(call));
  }
}

OptimizerPtr RmsPropOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return std::make_unique<RmsProp>(views, common_of(section), *this);
}

}  // namespace tutti
