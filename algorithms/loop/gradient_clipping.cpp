#include "algorithms/loop/gradient_clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/stack.h>

#include <limits>
#include <numeric>

#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr double kNormFloor = 1e-6;  // torch.nn.utils.clip_grad_norm_'s

void clip_norm(const std::vector<at::Tensor>& gradients, double threshold, double grad_scale) {
  const at::Tensor norms = at::stack(at::_foreach_norm(gradients));
  const at::Tensor norm = at::linalg_vector_norm(norms) / grad_scale;
  at::_foreach_mul_(gradients, (threshold / (norm + kNormFloor)).clamp_max(1.0));
}

void clip_value(const std::vector<at::Tensor>& gradients, double limit) {
  at::_foreach_clamp_min_(gradients, -limit);
  at::_foreach_clamp_max_(gradients, limit);
}

at::Tensor unit_norms(const at::Tensor& tensor) {
  if (tensor.dim() <= 1) return at::linalg_vector_norm(tensor);
  std::vector<int64_t> inner(static_cast<std::size_t>(tensor.dim() - 1));
  std::iota(inner.begin(), inner.end(), 1);
  return at::linalg_vector_norm(tensor, 2, inner, /*keepdim=*/true);
}

// As in Composer, gradients of units with zero weights become 0, and 0 / 0 leaves gradients as they are.
void clip_adaptively(const ParamView& view, double threshold, double grad_scale) {
  const at::Tensor limit = unit_norms(view.tensor.detach()) * (threshold * grad_scale);
  at::Tensor ratio = limit / unit_norms(view.grad);
  view.grad.mul_(ratio.nan_to_num_(1.0, std::numeric_limits<double>::infinity()).clamp_max_(1.0));
}

}  // namespace

void apply_gradient_clipping(const std::vector<ParamView>& views, ClippingType type, double threshold,
                             double grad_scale) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const ParamView& view : views) {
    if (!view.grad.defined()) continue;
    TUTTI_ASSERT(view.whole(), view.name + " is a shard: clipping needs whole parameters");
    gradients.push_back(view.grad);
    if (type == ClippingType::kAdaptive) clip_adaptively(view, threshold, grad_scale);
  }
  if (gradients.empty()) return;
  if (type == ClippingType::kNorm) clip_norm(gradients, threshold, grad_scale);
  if (type == ClippingType::kValue) clip_value(gradients, threshold * grad_scale);
}

bool GradientClipping::match(Event event, const State& state) const {
  return event == Event::kAfterTrainBatch || (state.composer && event == Event::kInit);
}

void GradientClipping::apply(Event event, State& state, Logger&) {
  if (event == Event::kAfterTrainBatch)
    apply_gradient_clipping(state.views, type_, threshold_, state.grad_scale);
}

}  // namespace tutti
