#include "training/precision.h"

#include <ATen/core/Tensor.h>

#include <cmath>
#include <limits>

namespace tutti {
namespace {

std::optional<at::ScalarType> dtype_of(const Setting& section, const std::string& key) {
  if (!section.has(key)) return std::nullopt;
  return section.at(key).text() == "bf16" ? at::kBFloat16 : at::kFloat;
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

LossScaling loss_scaling_of(const Setting& section) {
  return {section.at("init_scale").number(), section.at("growth_factor").number(),
          section.at("backoff_factor").number(), section.at("growth_interval").integer()};
}

}  // namespace

Precision Precision::read(const Setting& recipe) {
  const Setting& asked = recipe.at("train").at("precision");
  if (asked.text() == "amp_fp8")
    asked.fail(
        "8-bit numbers need a GPU of NVIDIA's and its Transformer Engine; here amp_bf16 is the fastest");
  Precision precision;
  precision.name = asked.text();
  precision.autocast = autocast_of(precision.name);
  const Setting& section = recipe.at("precision");
  precision.param_dtype = dtype_of(section, "param_dtype");
  precision.reduce_dtype = dtype_of(section, "reduce_dtype");
  precision.buffer_dtype = dtype_of(section, "buffer_dtype");
  precision.loss_scaling = loss_scaling_of(section);
  if (precision.param_dtype == at::kBFloat16 && precision.autocast != at::kBFloat16)
    section.at("param_dtype")
        .fail("bf16 parameters compute in bf16: they need [train] precision = \"amp_bf16\", not \"" +
              asked.text() + "\"");
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
    if (changed >= std::numeric_limits<float>::min()) state_.scale = changed;
  } else if (++state_.growth_tracker >= options_.growth_interval) {
    state_.growth_tracker = 0;
    if (std::isfinite(changed)) state_.scale = changed;
  }
}

void GradScaler::restore(const GradScalerState& state) {
  if (state.scale > 0) state_ = state;
}

}  // namespace tutti
