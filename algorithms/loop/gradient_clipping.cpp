#include "algorithms/loop/gradient_clipping.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_clamp_max.h>
#include <ATen/ops/_foreach_clamp_min.h>
#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/tensor.h>

#include <limits>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/state.h"

namespace tutti {
namespace {

constexpr double kNormFloor = 1e-6;  // torch.nn.utils.clip_grad_norm_'s

void clip_norm(const std::vector<at::Tensor>& gradients, double norm, double threshold) {
  const double factor = threshold / (norm + kNormFloor);
  if (factor >= 1.0) {
    TUTTI_PROBE("clipping: a norm is below the threshold");
    return;
  }
  at::_foreach_mul_(gradients, factor);
}

void clip_value(const std::vector<at::Tensor>& gradients, double limit) {
  at::_foreach_clamp_min_(gradients, -limit);
  at::_foreach_clamp_max_(gradients, limit);
}

// As in Composer, gradients of units with zero weights become 0, and 0 / 0 leaves gradients as they are.
void scale_down(const at::Tensor& gradient, const at::Tensor& limits, const at::Tensor& norms) {
  at::Tensor ratio = limits / norms;
  ratio = ratio.nan_to_num_(1.0, std::numeric_limits<double>::infinity()).clamp_max_(1.0);
  gradient.mul_(ratio.to(gradient.scalar_type()));
}

// Of each slice of dim 0: float64 [rows, 1, ...].
at::Tensor slice_norms(const at::Tensor& tensor) {
  std::vector<int64_t> shape(tensor.dim(), 1);
  shape[0] = tensor.size(0);
  return row_squares(tensor).sqrt_().view(shape);
}

void clip_adaptively(const std::vector<ParamView>& views, double threshold, double grad_scale,
                     const SumOverRanks& sum_over_ranks) {
  std::vector<at::Tensor> units, summed;  // gradient and weight of the parameters that are one unit
  for (const ParamView& view : views) {
    if (!view.grad.defined()) continue;
    TUTTI_ASSERT(view.placement.has_whole_rows(), view.name + ": a unit is a whole row");
    const at::Tensor weight = view.tensor.detach().to(view.grad.device());
    if (view.shape.size() <= 1)
      for (const at::Tensor& tensor : {view.grad, weight}) {
        units.push_back(tensor);
        summed.push_back(view.part_of_sum(tensor));
      }
    else
      scale_down(view.grad, slice_norms(weight) * (threshold * grad_scale), slice_norms(view.grad));
  }
  if (units.empty()) return;
  const at::Tensor unit_norms =
      at::tensor(norms(summed, sum_over_ranks), at::kDouble).to(units.front().device());
  for (std::size_t i = 0; i < units.size(); i += 2) {
    const auto place = static_cast<int64_t>(i);
    scale_down(units[i], unit_norms[place + 1] * (threshold * grad_scale), unit_norms[place]);
  }
}

}  // namespace

void apply_gradient_clipping(const std::vector<ParamView>& views, ClippingType type, double threshold,
                             double grad_scale, const SumOverRanks& sum_over_ranks) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients, summed;
  for (const ParamView& view : views) {
    TUTTI_ASSERT(view.whole() || sum_over_ranks, view.name + " is a shard: its norm is a sum over ranks");
    if (!view.grad.defined()) continue;
    gradients.push_back(view.grad);
    summed.push_back(view.part_of_sum(view.grad));
  }
  if (gradients.empty()) return;
  if (type == ClippingType::kAdaptive) clip_adaptively(views, threshold, grad_scale, sum_over_ranks);
  if (type == ClippingType::kNorm)
    clip_norm(gradients, total_norm(summed, sum_over_ranks) / grad_scale, threshold);
  if (type == ClippingType::kValue) clip_value(gradients, threshold * grad_scale);
}

bool GradientClipping::match(Event event, const State& state) const {
  return event == Event::kAfterTrainBatch || (state.composer && event == Event::kInit);
}

void GradientClipping::apply(Event event, State& state, Logger&) {
  if (event == Event::kAfterTrainBatch)
    apply_gradient_clipping(state.views, type_, threshold_, state.grad_scale, state.sum_over_shards());
}

AlgorithmPtr GradientClippingOptions::make(const Setting&) const {
  return std::make_shared<GradientClipping>(clipping_type, clipping_threshold);
}

}  // namespace tutti
