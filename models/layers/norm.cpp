#include "models/layers/norm.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/full.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/native_batch_norm.h>

#include "models/layers/buffer_updates.h"
#include "models/layers/linear.h"
#include "runtime/error.h"
#include "tensors/fused/layer_norm.h"
#include "tensors/fused/rms_norm.h"

namespace tutti {
namespace {

// `size`: numbers of a channel. The kernel checks none.
void require_channels(const at::Tensor& x, const at::Tensor& values, int64_t size, const char* name) {
  if (values.defined() && values.numel() != size * x.size(1))
    throw UserError(std::string("the ") + name + " of a batch norm has " +
                    std::to_string(values.numel() / size) + " channels, and its input " +
                    std::to_string(x.size(1)));
}

at::Tensor tensor_of(const Parameter* parameter) { return parameter ? parameter->tensor : at::Tensor(); }

}  // namespace

BatchNorm::BatchNorm(const BatchNormOptions& options)
    : options_(options),
      weight_(options.affine ? &add_parameter("weight", {options.channels}, constant_init(1.0)) : nullptr),
      bias_(options.affine ? &add_parameter("bias", {options.channels}, constant_init(0.0)) : nullptr),
      running_mean_(add_buffer("running_mean", {options.channels}, constant_init(0.0))),
      running_var_(add_buffer("running_var", {options.channels}, constant_init(1.0))),
      batches_tracked_(add_buffer("num_batches_tracked", {}, constant_init(0.0), at::kLong)) {}

// With momentum 1 the kernel writes the mean and the unbiased variance of this input.
at::Tensor batch_normalised(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, double eps,
                            const at::Tensor& moments) {
  require_channels(x, weight, 1, "weight");
  require_channels(x, bias, 1, "bias");
  require_channels(x, moments, 2, "statistics");
  const auto normal = [&](const at::Tensor& mean, const at::Tensor& variance) {
    return std::get<0>(
        at::native_batch_norm(x, weight, bias, mean, variance, /*training=*/true, /*momentum=*/1.0, eps));
  };
  if (!moments.defined()) return normal({}, {});
  const int64_t channels = x.size(1);
  const auto dtype = weight.defined() ? weight.scalar_type() : at::kFloat;  // the kernel's, of statistics
  const at::Tensor written = dtype == at::kFloat ? moments : moments.to(dtype);
  at::Tensor output = normal(written.narrow(0, 0, channels), written.narrow(0, channels, channels));
  const at::NoGradGuard no_gradients;
  if (dtype != at::kFloat) moments.copy_(written);
  return output;
}

TensorTree BatchNorm::forward(const TensorTree& input) {
  const at::Tensor &x = input.tensor(), weight = tensor_of(weight_), bias = tensor_of(bias_);
  if (!context().training) {
    require_channels(x, running_mean_.tensor, 1, "mean");
    const auto dtype = weight.defined() ? weight.scalar_type() : at::kFloat;
    return std::get<0>(at::native_batch_norm(x, weight, bias, running_mean_.tensor.to(dtype),
                                             running_var_.tensor.to(dtype), /*training=*/false,
                                             /*momentum=*/1.0, options_.eps));
  }
  const bool has_variance = x.numel() > x.size(1);
  if (!context().statistics || !has_variance) return batch_normalised(x, weight, bias, options_.eps);
  const int64_t values = 2 * options_.channels;
  // The last number stays; the others could be any that are finite.
  const at::Tensor numbers = at::full({values + 1}, options_.momentum, x.options().dtype(at::kFloat));
  at::Tensor output = batch_normalised(x, weight, bias, options_.eps, numbers.narrow(0, 0, values));
  context().statistics->push_back({this, numbers});
  return output;
}

// The two updates r -> (1 - w) r + w x in turn are one such update.
void BatchNorm::join_statistics(RunningStatistics& so_far, const RunningStatistics& next) const {
  const int64_t values = 2 * options_.channels;
  float& weight = so_far.numbers.data_ptr<float>()[values];
  const double later = next.numbers.const_data_ptr<float>()[values];
  const double earlier = weight * (1.0 - later), both = earlier + later;
  if (both > 0)
    so_far.numbers.narrow(0, 0, values)
        .mul_(earlier / both)
        .add_(next.numbers.narrow(0, 0, values), later / both);
  weight = static_cast<float>(both);
}

void BatchNorm::apply_statistics(const RunningStatistics& statistics, BufferUpdates& updates) {
  const int64_t channels = options_.channels;
  const float rounded = statistics.numbers.const_data_ptr<float>()[2 * channels];
  const double weight = rounded == static_cast<float>(options_.momentum) ? options_.momentum : rounded;
  updates.average(running_mean_.tensor, statistics.numbers, 0, weight);
  updates.average(running_var_.tensor, statistics.numbers, channels, weight);
  updates.add(batches_tracked_.tensor, statistics.calls);
}

LayerNorm::LayerNorm(const LayerNormOptions& options)
    : options_(options),
      weight_(options.affine ? &add_parameter("weight", options.shape, constant_init(1.0)) : nullptr),
      bias_(options.affine && options.bias ? &add_parameter("bias", options.shape, constant_init(0.0))
                                           : nullptr) {}

TensorTree LayerNorm::forward(const TensorTree& input) {
  if (options_.before_linear && weight_ && bias_ && options_.shape.size() == 1 &&
      has_narrow_layer_norm(input.tensor(), weight_->tensor))
    return narrow_layer_norm(input.tensor(), weight_->tensor, bias_->tensor, options_.eps);
  return at::layer_norm(input.tensor(), options_.shape, tensor_of(weight_), tensor_of(bias_), options_.eps);
}

RMSNorm::RMSNorm(int64_t features, double eps)
    : weight_(add_parameter("weight", {features}, constant_init(1.0))), eps_(eps) {}

TensorTree RMSNorm::forward(const TensorTree& input) {
  return rms_normalised(input.tensor(), weight_.tensor, eps_);
}

GroupNorm::GroupNorm(const GroupNormOptions& options)
    : options_(options),
      weight_(options.affine ? &add_parameter("weight", {options.channels}, constant_init(1.0)) : nullptr),
      bias_(options.affine ? &add_parameter("bias", {options.channels}, constant_init(0.0)) : nullptr) {
  TUTTI_ASSERT(options.groups > 0 && options.channels % options.groups == 0,
               "the groups do not divide the channels");
}

at::Tensor for_group_norm(const at::Tensor& x) {
  return x.is_cpu() && !x.requires_grad() && at::GradMode::is_enabled() ? x.contiguous() : x;
}

TensorTree GroupNorm::forward(const TensorTree& input) {
  return at::group_norm(for_group_norm(input.tensor()), options_.groups, tensor_of(weight_), tensor_of(bias_),
                        options_.eps);
}

}  // namespace tutti
