#include "models/layers/bert_blocks.h"

#include <ATen/TensorOperators.h>

#include "models/layers/activation.h"
#include "models/layers/norm.h"
#include "runtime/error.h"

namespace tutti {

Residual Residual::of(const TensorTree& input) { return {input["output"], input["residual"]}; }

TensorTree Residual::tree() const { return TensorTree::Children{{"output", output}, {"residual", residual}}; }

BertResidualOutput::BertResidualOutput(int64_t in, const BertBlockOptions& options)
    : dense_(add_slot("dense", normal_linear(in, options.features, options.deviation))),
      norm_(add_slot("LayerNorm", std::make_shared<LayerNorm>(options.features, options.norm_eps))),
      dropout_(add_slot("dropout", std::make_shared<Dropout>(options.dropout))) {}

TensorTree BertResidualOutput::forward(const TensorTree& input) {
  const Residual given = Residual::of(input);
  return norm_(dropout_(dense_(given.output)) + given.residual);
}

BertIntermediate::BertIntermediate(const BertBlockOptions& options)
    : activation_(make_activation(options.activation)),
      dense_(add_slot("dense", normal_linear(options.features, options.intermediate, options.deviation))),
      act_(add_slot("intermediate_act_fn", activation_)) {
  TUTTI_ASSERT(activation_, "unknown activation");
}

TensorTree BertIntermediate::forward(const TensorTree& input) { return act_(dense_(input)); }

BertAttention::BertAttention(const BertBlockOptions& options)
    : self_(add_slot("self", std::make_shared<BertSelfAttention>(
                                 BertSelfAttention::Options{.features = options.features,
                                                            .heads = options.heads,
                                                            .dropout = options.attention_dropout,
                                                            .deviation = options.deviation}))),
      output_(add_slot("output", std::make_shared<BertSelfOutput>(options))) {}

TensorTree BertAttention::forward(const TensorTree& input) {
  return output_(Residual{self_(input).tensor(), MaskedStates::of(input).states}.tree());
}

BertLayer::BertLayer(const BertBlockOptions& options)
    : attention_(add_slot("attention", std::make_shared<BertAttention>(options))),
      intermediate_(add_slot("intermediate", std::make_shared<BertIntermediate>(options))),
      output_(add_slot("output", std::make_shared<BertOutput>(options))) {}

TensorTree BertLayer::forward(const TensorTree& input) {
  const at::Tensor attended = attention_(input).tensor();
  return output_(Residual{intermediate_(attended), attended}.tree());
}

BertLayers::BertLayers(int64_t count, const BertBlockOptions& options) {
  for (int64_t i = 0; i < count; ++i) add_slot(std::to_string(i), std::make_shared<BertLayer>(options));
}

TensorTree BertLayers::forward(const TensorTree& input) {
  MaskedStates now = MaskedStates::of(input);
  for (const auto& slot : slots()) now.states = (*slot)(now.tree()).tensor();
  return now.states;
}

}  // namespace tutti
