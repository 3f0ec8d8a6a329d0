#include "training/optimizers/adam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>

#include <cmath>

namespace tutti {

Adam::Adam(const std::vector<ParamView>& views, Common common, const Options& options)
    : Optimizer(views, std::move(common)),
      options_(options),
      exp_avg_(add_state("exp_avg")),
      exp_avg_sq_(add_state("exp_avg_sq")),
      steps_(at::zeros({std::ssize(views)}, at::kFloat).unbind()) {
  if (options_.amsgrad) max_exp_avg_sq_ = &add_state("max_exp_avg_sq");
}

void Adam::views_changed() { steps_ = at::zeros({std::ssize(exp_avg_)}, at::kFloat).unbind(); }

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

// AdamW's kernel shrinks weights by lr * weight_decay. Decoupled decay needs a factor of lr / base_lr; if
// base_lr is 0, the weights are shrunk here.
double Adam::kernel_weight_decay(const Call& call) const {
  if (options_.decay != Decay::kDecoupled) return call.weight_decay;
  if (base_lr() != 0.0) return call.weight_decay / base_lr();
  if (call.weight_decay != 0.0) at::_foreach_mul_(call.tensors, 1.0 - call.weight_decay);
  return 0.0;
}

void Adam::update(const Call& call, const at::Tensor& grad_scale) {
  for (const size_t i : call.members) *steps_[i].data_ptr<float>() = static_cast<float>(steps(i));
  const auto averages = pick(exp_avg_, call.members);
  const auto squares = pick(exp_avg_sq_, call.members);
  const auto maxima = max_exp_avg_sq_ ? pick(*max_exp_avg_sq_, call.members) : std::vector<at::Tensor>();
  const auto steps_of_each = pick(steps_, call.members);
  const auto scale = grad_scale.defined() ? std::optional(grad_scale) : std::nullopt;
  const double weight_decay = kernel_weight_decay(call);
  const auto kernel = [&](auto fused) {
    fused(call.tensors, call.grads, averages, squares, maxima, steps_of_each, lr(), options_.beta1,
          options_.beta2, weight_decay, options_.eps, options_.amsgrad, options_.maximize, scale,
          std::nullopt);
  };
  if (options_.decay == Decay::kGradient)
    kernel([](auto&&... args) { at::_fused_adam_(args...); });
  else
    kernel([](auto&&... args) { at::_fused_adamw_(args...); });
}

// The fraction of a weight that decay removes in a step.
double Adam::shrinkage(size_t view) const {
  if (options_.decay == Decay::kGradient) return 0.0;
  const double decay = weight_decay_of(view);
  if (options_.decay == Decay::kWeight) return lr() * decay;
  return base_lr() != 0.0 ? lr() / base_lr() * decay : decay;
}

// Reconstructs the update, which the kernel does not return: p' = (1 - shrinkage) p - s.
std::vector<std::pair<std::string, double>> Adam::norms(size_t index) const {
  if (steps(index) == 0) return {};
  const at::NoGradGuard no_grad;
  const auto norm = [](const at::Tensor& tensor) { return at::linalg_vector_norm(tensor).item<double>(); };
  const auto done = static_cast<double>(steps(index));
  const double root = std::sqrt(1.0 - std::pow(options_.beta2, done));
  const at::Tensor& squares = max_exp_avg_sq_ ? (*max_exp_avg_sq_)[index] : exp_avg_sq_[index];
  const at::Tensor parameter = view(index).tensor.detach();
  const at::Tensor step = exp_avg_[index] / (squares.sqrt() / root + options_.eps) *
                          (lr() / (1.0 - std::pow(options_.beta1, done)));
  const double shrinks = shrinkage(index);
  const at::Tensor before = (parameter + step) / (1.0 - shrinks);
  return {{"moment", norm(exp_avg_[index])},
          {"param", norm(parameter)},
          {"update", norm(step + before * shrinks)}};
}

}  // namespace tutti
