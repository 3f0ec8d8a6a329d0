#include "training/optimizers/sgd.h"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <vector>

namespace tutti {
namespace {

bool is_narrow(const at::Tensor& tensor) { return tensor.is_cpu() && tensor.element_size() < 4; }

}  // namespace

Sgd::Sgd(const std::vector<ParamView>& views, Common common, const Options& options)
    : Optimizer(views, std::move(common)),
      options_(options),
      elementwise_(make_elementwise(options.momentum != 0.0 ? 3 : 2)) {
  if (options_.momentum != 0.0) momentum_buffers_ = &add_state("momentum_buffer");
  Sgd::views_changed();
}

void Sgd::views_changed() {
  int64_t largest = 0;
  for (size_t i = 0; i < view_count(); ++i)
    if (is_narrow(view(i).tensor)) largest = std::max(largest, view(i).tensor.numel());
  for (at::Tensor& wide : wide_) wide = at::empty({largest}, at::kFloat);
  elementwise_ = make_elementwise(momentum_buffers_ ? 3 : 2);
}

// Dampening does not apply to the first gradient of a parameter.
void Sgd::update(Call call, const at::Tensor& grad_scale) {
  const auto is_first = [&](size_t member) { return steps(member) == 1; };
  const auto firsts = std::count_if(call.members.begin(), call.members.end(), is_first);
  const bool all = firsts == std::ssize(call.members);
  if (firsts == 0 || all || options_.dampening == 0.0) return apply(std::move(call), grad_scale, all);
  Call first{call.weight_decay, {}, {}, {}, call.found_inf, call.lr_scale}, later = first;
  for (size_t i = 0; i < call.members.size(); ++i) {
    Call& part = is_first(call.members[i]) ? first : later;
    part.members.push_back(call.members[i]);
    part.tensors.push_back(call.tensors[i]);
    part.grads.push_back(call.grads[i]);
  }
  apply(std::move(first), grad_scale, /*is_first_step=*/true);
  apply(std::move(later), grad_scale, /*is_first_step=*/false);
}

void Sgd::apply(Call call, const at::Tensor& grad_scale, bool is_first_step) {
  if (std::ranges::any_of(call.tensors, is_narrow)) return apply_in_fp32(call, grad_scale, is_first_step);
  auto buffers = momentum_buffers_ ? pick(*momentum_buffers_, call.members) : std::vector<at::Tensor>();
  run_kernel(std::move(call), std::move(buffers), grad_scale, is_first_step);
}

// For 16 bits libtorch's kernel updates only the last few numbers of a tensor (2.7 to 2.11, on CPUs).
void Sgd::apply_in_fp32(const Call& call, const at::Tensor& grad_scale, bool is_first_step) {
  for (std::size_t i = 0; i < call.members.size(); ++i) {
    const auto wide = [](const at::Tensor& narrow, const at::Tensor& room) {
      return is_narrow(narrow) ? room.as_strided(narrow.sizes(), narrow.strides()).copy_(narrow) : narrow;
    };
    const at::Tensor tensor = wide(call.tensors[i], wide_[0]), grad = wide(call.grads[i], wide_[1]);
    const Call wide_call{call.weight_decay, {call.members[i]}, {tensor}, {grad}, {}, call.lr_scale};
    std::vector<at::Tensor> buffers;
    if (momentum_buffers_) buffers.push_back(wide((*momentum_buffers_)[call.members[i]], wide_[2]));
    run_kernel(wide_call, buffers, grad_scale, is_first_step);
    call.tensors[i].copy_(wide_call.tensors[0]);
    call.grads[i].copy_(wide_call.grads[0]);
    if (momentum_buffers_) (*momentum_buffers_)[call.members[i]].copy_(buffers[0]);
  }
}

void Sgd::run_kernel(Call call, std::vector<at::Tensor> buffers, const at::Tensor& grad_scale,
                     bool is_first_step) {
  const double lr_part = base_lr() == 0.0 ? 1.0 : lr() / base_lr();
  Elementwise::Lists lists;
  lists.push_back(std::move(call.tensors));
  lists.push_back(std::move(call.grads));
  if (momentum_buffers_) lists.push_back(std::move(buffers));
  const std::vector<at::Tensor> none;
  elementwise_.run(std::move(lists), [&](const Elementwise::Lists& some, const std::vector<size_t>&) {
    if (options_.decoupled && call.weight_decay != 0.0)
      shrink(some[0], 1.0 - lr_part * call.weight_decay, call.found_inf);
    at::_fused_sgd_(some[0], some[1], momentum_buffers_ ? some[2] : none,
                    options_.decoupled ? 0.0 : call.weight_decay, options_.momentum, lr_of(call),
                    options_.dampening, options_.nesterov, options_.maximize, is_first_step,
                    given(grad_scale), given(call.found_inf));
  });
}

}  // namespace tutti
