#include "models/layers/norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/native_batch_norm.h>
#include <ATen/ops/zeros_like.h>

#include "models/layers/linear.h"

namespace tutti {

BatchNorm2d::BatchNorm2d(int64_t channels, double eps, double momentum)
    : weight_(add_parameter("weight", {channels}, constant_init(1.0))),
      bias_(add_parameter("bias", {channels}, constant_init(0.0))),
      running_mean_(add_buffer("running_mean", {channels}, constant_init(0.0))),
      running_var_(add_buffer("running_var", {channels}, constant_init(1.0))),
      batches_tracked_(add_buffer("num_batches_tracked", {}, constant_init(0.0), at::kLong)),
      eps_(eps),
      momentum_(momentum) {}

// With momentum 1 the kernel writes the mean and the unbiased variance of this input.
at::Tensor BatchNorm2d::normalise(const at::Tensor& x, const at::Tensor& mean, const at::Tensor& variance,
                                  bool training) const {
  return std::get<0>(at::native_batch_norm(x, weight_.tensor, bias_.tensor, mean, variance, training,
                                           /*momentum=*/1.0, eps_));
}

TensorTree BatchNorm2d::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  const auto weights = weight_.tensor.scalar_type();  // the kernel needs statistics of this type
  if (!context().training)
    return normalise(x, running_mean_.tensor.to(weights), running_var_.tensor.to(weights), false);
  if (!context().statistics) return normalise(x, {}, {}, true);
  const at::Tensor mean = at::zeros_like(weight_.tensor.detach());
  const at::Tensor variance = at::zeros_like(weight_.tensor.detach());
  at::Tensor normal = normalise(x, mean, variance, true);
  context().statistics->push_back({this, mean, variance, x.numel() / x.size(1)});
  return normal;
}

void BatchNorm2d::apply_statistics(const RunningStatistics& found) {
  if (found.samples < 2) return;  // the variance is undefined
  const at::NoGradGuard no_grad;
  running_mean_.tensor.mul_(1.0 - momentum_).add_(found.mean, momentum_);
  running_var_.tensor.mul_(1.0 - momentum_).add_(found.variance, momentum_);
  batches_tracked_.tensor.add_(1);
}

LayerNorm::LayerNorm(int64_t features, double eps)
    : weight_(add_parameter("weight", {features}, constant_init(1.0))),
      bias_(add_parameter("bias", {features}, constant_init(0.0))),
      eps_(eps) {}

TensorTree LayerNorm::forward(const TensorTree& input) {
  return at::layer_norm(input.tensor(), weight_.tensor.sizes(), weight_.tensor, bias_.tensor, eps_);
}

}  // namespace tutti
