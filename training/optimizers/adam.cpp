#include "training/optimizers/adam.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adam.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <cmath>
#include <map>

#include "tensors/norms.h"

namespace tutti {

Adam::Adam(const std::vector<ParamView>& views, Common common, const Options& options)
    : Optimizer(views, std::move(common)),
      options_(options),
      exp_avg_(add_state("exp_avg")),
      exp_avg_sq_(add_state("exp_avg_sq")),
      steps_(at::zeros({std::ssize(views)}, at::kFloat).unbind()),
      elementwise_(make_elementwise(options.amsgrad ? 5 : 4)) {
  if (options_.amsgrad) max_exp_avg_sq_ = &add_state("max_exp_avg_sq");
}

void Adam::views_changed() {
  steps_ = at::zeros({std::ssize(exp_avg_)}, at::kFloat).unbind();
  elementwise_ = make_elementwise(options_.amsgrad ? 5 : 4);
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

// AdamW's kernel shrinks weights by lr * weight_decay. Decoupled decay needs a factor of lr / base_lr; if
// base_lr is 0, the weights are shrunk here.
double Adam::kernel_weight_decay(const Call& call, const std::vector<at::Tensor>& tensors) const {
  const double initial_lr = base_lr() * call.lr_scale;
  if (options_.decay != Decay::kDecoupled) return call.weight_decay;
  if (initial_lr != 0.0) return call.weight_decay / initial_lr;
  if (call.weight_decay != 0.0)
    shrink(tensors, 1.0 - (base_lr() != 0.0 ? lr() / base_lr() : 1.0) * call.weight_decay, call.found_inf);
  return 0.0;
}

void Adam::update(Call call, const at::Tensor& grad_scale) {
  count_steps(call.members);
  Elementwise::Lists lists;
  lists.push_back(std::move(call.tensors));
  lists.push_back(std::move(call.grads));
  lists.push_back(pick(exp_avg_, call.members));
  lists.push_back(pick(exp_avg_sq_, call.members));
  if (max_exp_avg_sq_) lists.push_back(pick(*max_exp_avg_sq_, call.members));
  const auto member = [&](size_t place) { return call.members[place]; };
  const auto kernel = [&](const Elementwise::Lists& some, const std::vector<size_t>& places) {
    std::vector<at::Tensor> steps_of_each;
    steps_of_each.reserve(places.size());
    for (const size_t place : places) steps_of_each.push_back(steps_[member(place)]);
    run_kernel(some, steps_of_each, call, grad_scale);
  };
  const auto alike = [&](size_t one, size_t other) { return steps(member(one)) == steps(member(other)); };
  elementwise_.run(std::move(lists), kernel, alike);
}

// A device reads the counts where they are: one scalar for all parameters with the same count.
void Adam::count_steps(const std::vector<size_t>& members) {
  std::map<int64_t, at::Tensor> scalars;
  for (const size_t i : members) {
    const c10::Device where = view(i).offloaded_from.value_or(view(i).tensor.device());
    if (where.is_cpu()) {
      *steps_[i].data_ptr<float>() = static_cast<float>(steps(i));
      continue;
    }
    at::Tensor& scalar = scalars[steps(i)];
    if (!scalar.defined()) scalar = at::full({}, steps(i), at::dtype(at::kFloat).device(where));
    steps_[i] = scalar;
  }
}

void Adam::run_kernel(const Elementwise::Lists& lists, const std::vector<at::Tensor>& steps, const Call& call,
                      const at::Tensor& grad_scale) {
  const auto maxima = lists.size() > 4 ? lists[4] : std::vector<at::Tensor>();
  const double weight_decay = kernel_weight_decay(call, lists[0]);
  const auto kernel = [&](auto fused) {
    fused(lists[0], lists[1], lists[2], lists[3], maxima, steps, lr_of(call), options_.beta1, options_.beta2,
          weight_decay, options_.eps, options_.amsgrad, options_.maximize, given(grad_scale),
          given(call.found_inf));
  };
  if (options_.decay == Decay::kGradient)
    kernel([](auto&&... args) { at::_fused_adam_(args...); });
  else
    kernel([](auto&&... args) { at::_fused_adamw_(args...); });
}

// The fraction of a weight that decay removes in a step.
double Adam::shrinkage(size_t view) const {
  if (options_.decay == Decay::kGradient) return 0.0;
  const double decay = rates_of(view).weight_decay;
  if (options_.decay == Decay::kWeight) return lr() * rates_of(view).lr_scale * decay;
  return base_lr() != 0.0 ? lr() / base_lr() * decay : decay;
}

// Reconstructs the update, which the kernel does not return: p' = (1 - shrinkage) p - s.
std::vector<std::pair<std::string, ExactSum>> Adam::squares(size_t index) const {
  if (steps(index) == 0) return {};
  const at::NoGradGuard no_grad;
  const auto done = static_cast<double>(steps(index));
  const double root = std::sqrt(1.0 - std::pow(options_.beta2, done));
  const at::Tensor moment = in_update(view(index), exp_avg_[index]);
  const at::Tensor squares =
      in_update(view(index), max_exp_avg_sq_ ? (*max_exp_avg_sq_)[index] : exp_avg_sq_[index]);
  const at::Tensor parameter = in_update(view(index), view(index).tensor.detach());
  const at::Tensor step = moment / (squares.sqrt() / root + options_.eps) *
                          (lr() * rates_of(index).lr_scale / (1.0 - std::pow(options_.beta1, done)));
  const double shrinks = shrinkage(index);
  const at::Tensor before = (parameter + step) / (1.0 - shrinks);
  return {{"moment", square_sum(moment)},
          {"param", square_sum(parameter)},
          {"update", square_sum(step + before * shrinks)}};
}

}  // namespace tutti
