#include "training/optimizers/lamb.h"

#include <ATen/ops/div.h>
#include <ATen/ops/sqrt.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensors/norms.h"

namespace tutti {

Lamb::Lamb(const std::vector<ParamView>& views, Common common, const LambOptions& options)
    : PartwiseOptimizer(views, std::move(common)), options_(options) {
  add_list("exp_avg");
  add_list("exp_avg_sq");
  add_scratch(2, /*by_rows=*/true);
  squares_ = std::make_unique<SquareSums>(2 * view_count());
}

void Lamb::views_changed() {
  PartwiseOptimizer::views_changed();
  squares_ = std::make_unique<SquareSums>(2 * view_count());
}

void Lamb::follow_gradient(const InParts::Part& part) const {
  const double beta1 = options_.betas[0], beta2 = options_.betas[1];
  const at::Tensor &grad = part.lists[1], &exp_avg = part.lists[2], &exp_avg_sq = part.lists[3];
  at::Tensor(exp_avg).mul_(beta1).add_(grad, options_.grad_averaging ? 1.0 - beta1 : 1.0);
  at::Tensor(exp_avg_sq).mul_(beta2).addcmul_(grad, grad, 1.0 - beta2);
}

// Before it is scaled by trust and learning rate; in scratch.
at::Tensor Lamb::step_of(const InParts::Part& part, const Call& call, size_t view) const {
  at::Tensor root = part.scratch[0], step = part.scratch[1];
  const auto done = static_cast<double>(steps(view));
  const auto correction = [&](double beta) {
    return options_.bias_correction ? 1.0 - std::pow(beta, done) : 1.0;
  };
  at::sqrt_out(root, part.lists[3]).div_(std::sqrt(correction(options_.betas[1]))).add_(options_.eps);
  step.copy_(part.lists[2]).div_(correction(options_.betas[0])).div_(root);
  if (call.weight_decay != 0.0) step.add_(part.lists[0], call.weight_decay);
  return step;
}

double Lamb::trust(size_t place) const {
  const double weight_norm = std::sqrt(squares_->value(2 * place));
  const double step_norm = std::sqrt(squares_->value(2 * place + 1));
  const double ratio = weight_norm > 0.0 && step_norm > 0.0 ? weight_norm / step_norm : 1.0;
  return options_.trust_clip ? std::min(1.0, ratio) : ratio;
}

void Lamb::update_part(const InParts::Part& part, const Call& call, size_t view) {
  follow_gradient(part);
  at::Tensor(part.lists[0]).add_(step_of(part, call, view), -lr_of(call));
}

void Lamb::update(Call call, const at::Tensor& grad_scale) {
  if (call.weight_decay == 0.0 && !options_.always_adapt)
    return PartwiseOptimizer::update(std::move(call), grad_scale);
  squares_->clear(2 * call.members.size());
  run(call, [&](const InParts::Part& part) {
    const size_t member = call.members[part.place];
    divide(part.lists[1], grad_scale);
    follow_gradient(part);
    const at::Tensor step = step_of(part, call, member);
    if (!view(member).counts_in_sums()) return;
    squares_->add(2 * part.place, square_sum(part.rows(part.lists[0])));
    squares_->add(2 * part.place + 1, square_sum(part.rows(step)));
  });
  squares_->sum_over(sum_over_shards());
  run(call, [&](const InParts::Part& part) {
    const at::Tensor step = step_of(part, call, call.members[part.place]);
    at::Tensor(part.lists[0]).add_(step, -lr_of(call) * trust(part.place));
  });
}

OptimizerPtr LambOptions::make(const Setting& section, const std::vector<ParamView>& views) const {
  require_betas(section);
  return std::make_unique<Lamb>(views, common_of(section), *this);
}

}  // namespace tutti
