#include "training/adam.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>

namespace tutti {

Adam::Adam(const std::vector<ParamView>& views, Common common, const Options& options)
    : Optimizer(views, std::move(common)),
      options_(options),
      exp_avg_(add_state("exp_avg")),
      exp_avg_sq_(add_state("exp_avg_sq")),
      step_(at::zeros({}, at::kFloat)) {
  if (options_.amsgrad) max_exp_avg_sq_ = &add_state("max_exp_avg_sq");
}

const char* Adam::name() const {
  switch (options_.decay) {
    case Decay::kGradient:
      return "Adam";
    case Decay::kWeight:
      return "AdamW";
    case Decay::kDecoupled:
      return "DecoupledAdamW";
  }
  return "";
}

// The weight_decay for a kernel. AdamW's shrinks weights by lr * weight_decay; decoupled, that must be lr /
// base_lr of it, or all of it where base_lr is 0, which is done here.
double Adam::shrink_or_decay(const Call& call) const {
  if (options_.decay != Decay::kDecoupled) return call.weight_decay;
  if (base_lr() != 0.0) return call.weight_decay / base_lr();
  if (call.weight_decay != 0.0) at::_foreach_mul_(call.tensors, 1.0 - call.weight_decay);
  return 0.0;
}

void Adam::update(const Call& call, const at::Tensor& grad_scale) {
  *step_.data_ptr<float>() = static_cast<float>(steps());
  const auto averages = pick(exp_avg_, call.members);
  const auto squares = pick(exp_avg_sq_, call.members);
  const auto maxima = max_exp_avg_sq_ ? pick(*max_exp_avg_sq_, call.members) : std::vector<at::Tensor>();
  const std::vector<at::Tensor> steps_of_each(call.members.size(), step_);
  const auto scale = grad_scale.defined() ? std::optional(grad_scale) : std::nullopt;
  const double weight_decay = shrink_or_decay(call);
  const auto kernel = [&](auto fused) {
    fused(call.tensors, call.grads, averages, squares, maxima, steps_of_each, lr(), options_.beta1,
          options_.beta2, weight_decay, options_.eps, options_.amsgrad, /*maximize=*/false, scale,
          std::nullopt);
  };
  if (options_.decay == Decay::kGradient)
    kernel([](auto&&... args) { at::_fused_adam_(args...); });
  else
    kernel([](auto&&... args) { at::_fused_adamw_(args...); });
}

}  // namespace tutti
