#include "algorithms/surgery/gated_linear_units.h"

#include <ATen/TensorOperators.h>

#include "algorithms/surgery/effect.h"
#include "models/layers/activation.h"
#include "models/layers/bert_blocks.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

BertGatedFfOutput::BertGatedFfOutput(const Options& options)
    : gated_layer_(add_slot("gated_layer", std::make_shared<Linear>(options.features, options.intermediate,
                                                                    options.gated_layer_bias))),
      non_gated_layer_(add_slot(
          "non_gated_layer",
          std::make_shared<Linear>(options.features, options.intermediate, options.non_gated_layer_bias))),
      wo_(add_slot("wo", std::make_shared<Linear>(options.intermediate, options.features))),
      dropout_(add_slot("dropout", std::make_shared<Dropout>(options.dropout))),
      act_(add_slot("act", options.act_fn)),
      layernorm_(add_slot("layernorm", std::make_shared<LayerNorm>(options.features, options.norm_eps))) {
  TUTTI_ASSERT(options.act_fn, "a gate without an activation");
}

TensorTree BertGatedFfOutput::forward(const TensorTree& input) {
  const Residual given = Residual::of(input);
  const at::Tensor gated = act_(gated_layer_(given.output)) * non_gated_layer_(given.output);
  return layernorm_(wo_(dropout_(gated)) + given.residual);
}

// A block's BertIntermediate comes before its BertOutput in the order of slots.
int apply_gated_linear_units(Layer& model, std::shared_ptr<Layer> act_fn, bool gated_layer_bias,
                             bool non_gated_layer_bias) {
  int gated = 0;
  std::shared_ptr<Layer> own;
  replace_layers(model, [&](const NamedSlot& named) -> std::shared_ptr<Layer> {
    Layer& layer = named.slot->layer();
    if (const auto* first = dynamic_cast<const BertIntermediate*>(&layer)) {
      own = first->activation();
      return std::make_shared<Identity>();
    }
    const auto* second = dynamic_cast<const BertOutput*>(&layer);
    if (!second) return nullptr;
    if (!act_fn && !own)
      throw UserError("GatedLinearUnits: '" + named.name +
                      "' has no BertIntermediate before it to take the activation from; act_fn names one");
    ++gated;
    return std::make_shared<BertGatedFfOutput>(
        BertGatedFfOutput::Options{.features = second->options().features,
                                   .intermediate = second->options().intermediate,
                                   .dropout = second->options().dropout,
                                   .act_fn = act_fn ? act_fn : own,
                                   .norm_eps = second->options().norm_eps,
                                   .gated_layer_bias = gated_layer_bias,
                                   .non_gated_layer_bias = non_gated_layer_bias});
  });
  return gated;
}

bool GatedLinearUnits::match(Event event, const State&) const { return event == Event::kInit; }

void GatedLinearUnits::apply(Event, State& state, Logger&) {
  const int gated = apply_gated_linear_units(*state.model, act_fn_, gated_layer_bias_, non_gated_layer_bias_);
  warn_without_effect(state, gated, name(), "feed-forward block of BERT's (BertIntermediate and BertOutput)");
}

AlgorithmPtr GatedLinearUnitsOptions::make(const Setting&) const {
  return std::make_shared<GatedLinearUnits>(act_fn ? make_activation(*act_fn) : nullptr, gated_layer_bias,
                                            non_gated_layer_bias);
}

}  // namespace tutti
