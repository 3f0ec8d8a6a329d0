#include "training/optimizers/adagrad.h"

#include <ATen/ops/sqrt.h>

#include <utility>

namespace tutti {

Adagrad::Adagrad(const std::vector<ParamView>& views, Common common, const AdagradOptions& options)
    : PartwiseOptimizer(views, std::move(common)), options_(options) {
  add_list("sum", options.initial_accumulator_value);
  add_scratch(2);
}

void Adagrad::update_part(const InParts::Part& part, const Call& call, size_t view) {
  at::Tensor weight = part.lists[0], sum = part.lists[2], root = part.scratch[0];
  const at::Tensor grad = descended(part, call.weight_decay, options_.maximize, part.scratch[1]);
  const double slowed = 1.0 + static_cast<double>(steps(view) - 1) * options_.lr_decay;
  sum.addcmul_(grad, grad);
  at::sqrt_out(root, sum).add_(options_.eps);
  weight.addcdiv_(grad, root, -lr_of(call) / slowed);
}

OptimizerPtr AdagradOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  return std::make_unique<Adagrad>(views, common_of(section), *this);
}

}  // namespace tutti
