#include "algorithms/surgery/low_precision_norms.h"

#include <ATen/autocast_mode.h>
#include <ATen/ops/group_norm.h>
#include <ATen/ops/layer_norm.h>

#include <optional>

#include "algorithms/surgery/effect.h"
#include "runtime/error.h"
#include "tensors/autograd.h"
#include "training/state.h"

namespace tutti {
namespace {

std::optional<at::ScalarType> low_precision(const at::Tensor& x, bool on_cpus) {
  const at::DeviceType device = x.device().type();
  if (!at::autocast::is_autocast_enabled(device) || (x.is_cpu() && !on_cpus)) return std::nullopt;
  return at::autocast::get_autocast_dtype(device);
}

at::Tensor lowered(const at::Tensor& tensor, std::optional<at::ScalarType> dtype) {
  return dtype ? tensor.to(*dtype) : tensor;
}

at::Tensor lowered(const Parameter* parameter, std::optional<at::ScalarType> dtype) {
  return parameter ? lowered(parameter->tensor, dtype) : at::Tensor();
}

template <class Norm, class LowPrecisionNorm>
int lower_norms(Layer& model, const Precision& precision, bool on_cpus) {
  if (!precision.autocast) return 0;
  const auto replaced = replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    const auto* norm = dynamic_cast<const Norm*>(&named.slot->layer());
    return norm ? std::make_shared<LowPrecisionNorm>(*norm, on_cpus) : nullptr;
  });
  return static_cast<int>(replaced.size());
}

Event checked(Event apply_at) {
  if (apply_at != Event::kInit && apply_at != Event::kAfterLoad)
    throw UserError(std::string("expected init or after_load, not ") + name(apply_at));
  return apply_at;
}

void warn_if_none(const State& state, int lowered, const std::string& algorithm, const std::string& norm) {
  if (state.precision.autocast) return warn_without_effect(state, lowered, algorithm, norm);
  if (lowered == 0)
    state.warn_on_rank_zero(algorithm + " has no effect: [train] precision is " + state.precision.name +
                            ", neither amp_bf16 nor amp_fp16");
}

}  // namespace

LPLayerNorm::LPLayerNorm(const LayerNorm& old, bool on_cpus)
    : options_(old.options()),
      on_cpus_(on_cpus),
      weight_(old.weight() ? &adopt(*old.weight()) : nullptr),
      bias_(old.bias() ? &adopt(*old.bias()) : nullptr) {}

TensorTree LPLayerNorm::forward(const TensorTree& input) {
  const auto dtype = low_precision(input.tensor(), on_cpus_);
  const at::Tensor x = lowered(input.tensor(), dtype);
  const AutocastScope off(std::nullopt, Device{x.device()});
  return at::layer_norm(x, options_.shape, lowered(weight_, dtype), lowered(bias_, dtype), options_.eps);
}

LPGroupNorm::LPGroupNorm(const GroupNorm& old, bool on_cpus)
    : options_(old.options()),
      on_cpus_(on_cpus),
      weight_(old.weight() ? &adopt(*old.weight()) : nullptr),
      bias_(old.bias() ? &adopt(*old.bias()) : nullptr) {}

TensorTree LPGroupNorm::forward(const TensorTree& input) {
  const auto dtype = low_precision(input.tensor(), on_cpus_);
  const at::Tensor x = lowered(input.tensor(), dtype);
  const AutocastScope off(std::nullopt, Device{x.device()});
  return at::group_norm(for_group_norm(x), options_.groups, lowered(weight_, dtype), lowered(bias_, dtype),
                        options_.eps);
}

int apply_low_precision_layernorm(Layer& model, const Precision& precision, bool on_cpus) {
  return lower_norms<LayerNorm, LPLayerNorm>(model, precision, on_cpus);
}

int apply_low_precision_groupnorm(Layer& model, const Precision& precision, bool on_cpus) {
  return lower_norms<GroupNorm, LPGroupNorm>(model, precision, on_cpus);
}

LowPrecisionLayerNorm::LowPrecisionLayerNorm(Event apply_at) : apply_at_(checked(apply_at)) {}

void LowPrecisionLayerNorm::apply(Event, State& state, Logger&) {
  const int lowered = apply_low_precision_layernorm(*state.model, state.precision, !state.composer);
  warn_if_none(state, lowered, name(), "LayerNorm");
}

LowPrecisionGroupNorm::LowPrecisionGroupNorm(Event apply_at) : apply_at_(checked(apply_at)) {}

void LowPrecisionGroupNorm::apply(Event, State& state, Logger&) {
  const int lowered = apply_low_precision_groupnorm(*state.model, state.precision, !state.composer);
  warn_if_none(state, lowered, name(), "GroupNorm");
}

AlgorithmPtr LowPrecisionGroupNormOptions::make(const Setting&) const {
  return std::make_shared<LowPrecisionGroupNorm>(apply_at);
}

AlgorithmPtr LowPrecisionLayerNormOptions::make(const Setting&) const {
  return std::make_shared<LowPrecisionLayerNorm>(apply_at);
}

}  // namespace tutti
