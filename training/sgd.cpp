#include "training/sgd.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_fused_sgd.h>

namespace tutti {

Sgd::Sgd(const std::vector<ParamView>& views, Common common, const Options& options)
    : Optimizer(views, std::move(common)), options_(options) {
  if (options_.momentum != 0.0) momentum_buffers_ = &add_state("momentum_buffer");
}

void Sgd::update(const Call& call, const at::Tensor& grad_scale) {
  const auto buffers = momentum_buffers_ ? pick(*momentum_buffers_, call.members) : std::vector<at::Tensor>();
  const double lr_part = base_lr() == 0.0 ? 1.0 : lr() / base_lr();
  if (options_.decoupled && call.weight_decay != 0.0)
    at::_foreach_mul_(call.tensors, 1.0 - lr_part * call.weight_decay);
  at::_fused_sgd_(call.tensors, call.grads, buffers, options_.decoupled ? 0.0 : call.weight_decay,
                  options_.momentum, lr(), options_.dampening, options_.nesterov, /*maximize=*/false,
                  /*is_first_step=*/steps() == 1,
                  grad_scale.defined() ? std::optional(grad_scale) : std::nullopt);
}

}  // namespace tutti
