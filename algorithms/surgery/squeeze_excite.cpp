#include "algorithms/surgery/squeeze_excite.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <vector>

#include "algorithms/surgery/effect.h"
#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/linear.h"
#include "models/layers/pool.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

int64_t latent_size(int64_t num_features, double latent_channels) {
  const double size =
      latent_channels < 1.0 ? latent_channels * static_cast<double>(num_features) : latent_channels;
  if (size < 1.0)
    throw UserError("latent_channels leaves no channel of " + std::to_string(num_features) +
                    "; expected a number from 1 on, or a larger part");
  return static_cast<int64_t>(size);
}

std::shared_ptr<Layer> pool_and_mlp(int64_t features, int64_t latent) {
  return std::make_shared<Sequential>(std::vector<std::shared_ptr<Layer>>{
      std::make_shared<AdaptiveAvgPool2d>(), std::make_shared<Flatten>(),
      std::make_shared<Linear>(features, latent, /*bias=*/false), std::make_shared<ReLU>(),
      std::make_shared<Linear>(latent, features, /*bias=*/false), std::make_shared<Sigmoid>()});
}

}  // namespace

SqueezeExcite2d::SqueezeExcite2d(int64_t num_features, double latent_channels)
    : pool_and_mlp_(
          add_slot("pool_and_mlp", pool_and_mlp(num_features, latent_size(num_features, latent_channels)))) {}

TensorTree SqueezeExcite2d::forward(const TensorTree& input) {
  const at::Tensor& x = input.tensor();
  return x * pool_and_mlp_(x).view({x.size(0), x.size(1), 1, 1});
}

SqueezeExciteConv2d::SqueezeExciteConv2d(const std::shared_ptr<Conv2d>& conv, double latent_channels)
    : conv_(add_slot("conv", conv)),
      se_(add_slot("se", std::make_shared<SqueezeExcite2d>(conv->options().out_channels, latent_channels))) {}

int apply_squeeze_excite(Layer& model, double latent_channels, int64_t min_channels) {
  const auto excited = wrapped_in<SqueezeExciteConv2d>(model);
  const auto replaced = replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    const auto conv = std::dynamic_pointer_cast<Conv2d>(named.slot->share());
    if (!conv || excited.count(conv.get())) return nullptr;
    if (std::min(conv->options().in_channels, conv->options().out_channels) < min_channels) return nullptr;
    return std::make_shared<SqueezeExciteConv2d>(conv, latent_channels);
  });
  return static_cast<int>(replaced.size());
}

void SqueezeExcite::apply(Event, State& state, Logger&) try {
  warn_without_effect(state, apply_squeeze_excite(*state.model, latent_channels_, min_channels_), name(),
                      "Conv2d of at least " + std::to_string(min_channels_) + " input and output channels");
} catch (const UserError& error) {
  fail(error.what());
}

AlgorithmPtr SqueezeExciteOptions::make(const Setting&) const {
  return std::make_shared<SqueezeExcite>(latent_channels, min_channels);
}

}  // namespace tutti
