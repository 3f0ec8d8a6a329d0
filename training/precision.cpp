#include "training/precision.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <limits>

#include "runtime/probe/probe.h"

namespace tutti {
namespace {

using Dtype = PrecisionSettings::Dtype;

std::optional<at::ScalarType> scalar_type(std::optional<Dtype> dtype) {
  if (!dtype) return std::nullopt;
  return dtype == Dtype::kBf16 ? at::kBFloat16 : at::kFloat;
}

std::optional<at::ScalarType> autocast_of(const std::string& name) {
  if (name == "amp_fp16") return at::kHalf;
  if (name == "amp_bf16") return at::kBFloat16;
  return std::nullopt;
}

void use(at::Tensor& tensor, std::optional<at::ScalarType> dtype) {
  if (!dtype || !tensor.is_floating_point() || tensor.scalar_type() == *dtype) return;
  const bool trained = tensor.requires_grad();
  tensor = tensor.detach().to(*dtype);
  tensor.set_requires_grad(trained);
}

}  // namespace

Precision Precision::read(const Setting& recipe) {
  const auto name = TrainSettings::kind().read(recipe.at("train")).precision;
  if (name == "amp_fp8")
    name.fail(
        "8-bit numbers need a GPU of NVIDIA's and its Transformer Engine; here amp_bf16 is the fastest");
  const PrecisionSettings settings = PrecisionSettings::kind().read(recipe.at("precision"));
  const Precision precision{.name = name,
                            .autocast = autocast_of(name),
                            .param_dtype = scalar_type(settings.param_dtype),
                            .buffer_dtype = scalar_type(settings.buffer_dtype),
                            .reduce_dtype = scalar_type(settings.reduce_dtype),
                            .loss_scaling = settings};
  if (precision.param_dtype == at::kBFloat16 && precision.autocast != at::kBFloat16)
    settings.param_dtype.fail(
        "bf16 parameters compute in bf16: they need [train] precision = \"amp_bf16\", not \"" + name.value +
        "\"");
  return precision;
}

void cast_parameter(at::Tensor& parameter, const Precision& precision) {
  use(parameter, precision.param_dtype);
}

void cast(Layer& model, const Precision& precision) {
  for (const auto& named : parameters(model)) cast_parameter(named.parameter->tensor, precision);
  for (const auto& named : buffers(model)) use(named.buffer->tensor, precision.buffer_dtype);
}

GradScaler::GradScaler(const LossScaling& options) : options_(options) {
  state_.scale = static_cast<float>(options.init_scale);
}

double GradScaler::loss_scale() const {
  if (state_.usual_weight <= 0) return state_.scale;
  return std::ldexp(state_.scale, -std::ilogb(state_.usual_weight));
}

// torch's scale is a float32 and does not grow to infinity. Here it does not shrink to 0 either, since
// gradients are divided by the scale.
void GradScaler::update(bool overflowed) {
  const double factor = overflowed ? options_.backoff_factor : options_.growth_factor;
  const auto changed = static_cast<float>(state_.scale * factor);
  if (overflowed) {
    state_.growth_tracker = 0;
    TUTTI_PROBE("loss scale: the scale shrinks");
    if (changed >= std::numeric_limits<float>::min()) state_.scale = changed;
  } else if (++state_.growth_tracker >= options_.growth_interval) {
    state_.growth_tracker = 0;
    TUTTI_PROBE("loss scale: the scale grows");
    if (std::isfinite(changed)) state_.scale = changed;
  }
}

void GradScaler::restore(const GradScalerState& state) {
  if (state.scale > 0 && state.scale != state_.scale) TUTTI_PROBE("resume: with another loss scale");
  if (state.scale > 0) state_ = state;
}

}  // namespace tutti
