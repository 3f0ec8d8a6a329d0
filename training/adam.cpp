#include "training/adam.h"

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

void Adam::update(const Call& call, const at::Tensor& grad_scale) {
  *step_.data_ptr<float>() = static_cast<float>(steps());
  const auto averages = pick(exp_avg_, call.members);
  const auto squares = pick(exp_avg_sq_, call.members);
  const auto maxima = max_exp_avg_sq_ ? pick(*max_exp_avg_sq_, call.members) : std::vector<at::Tensor>();
  const std::vector<at::Tensor> steps_of_each(call.members.size(), step_);
  const auto scale = grad_scale.defined() ? std::optional(grad_scale) : std::nullopt;
  // The AdamW kernel shrinks by lr * weight_decay.
  const bool decoupled = options_.decay == Decay::kDecoupled && base_lr() != 0.0;
  const double weight_decay = decoupled ? call.weight_decay / base_lr() : call.weight_decay;
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
