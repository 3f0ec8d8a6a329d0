#pragma once

#include <memory>

#include "algorithms/surgery/options.h"
#include "models/layers/layer.h"
#include "training/engine/algorithm.h"

namespace tutti {

// A gated feed-forward block (Dauphin et al. 2016, arXiv:1612.08083; Shazeer 2020, arXiv:2002.05202), over a
// Residual (models/layers/bert_blocks.h): layernorm(wo(dropout(act(gated_layer(output)) *
// non_gated_layer(output))) + residual). composer's BERTGatedFFOutput, with its names; initial values as of
// Linear and LayerNorm.
class BertGatedFfOutput final : public Layer {
 public:
  struct Options {
    int64_t features = 0;
    int64_t intermediate = 0;  // width of the gate
    double dropout = 0.0;
    std::shared_ptr<Layer> act_fn;
    double norm_eps = 1e-12;
    bool gated_layer_bias = false;
    bool non_gated_layer_bias = false;
  };

  explicit BertGatedFfOutput(const Options& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "BertGatedFfOutput"; }

 private:
  Slot& gated_layer_;
  Slot& non_gated_layer_;
  Slot& wo_;
  Slot& dropout_;
  Slot& act_;
  Slot& layernorm_;
};

// Makes BERT's feed-forward blocks gated: every BertOutput becomes a BertGatedFfOutput, and every
// BertIntermediate an Identity. `act_fn`: the gates' activation; null: the activation of the block's
// BertIntermediate. Returns the number of gated blocks. Call materialise afterwards: the new layers have new
// weights. composer.functional.apply_gated_linear_units.
int apply_gated_linear_units(Layer& model, std::shared_ptr<Layer> act_fn = nullptr,
                             bool gated_layer_bias = false, bool non_gated_layer_bias = false);

// apply_gated_linear_units at INIT. composer.algorithms.GatedLinearUnits.
class GatedLinearUnits final : public Algorithm {
 public:
  explicit GatedLinearUnits(std::shared_ptr<Layer> act_fn = nullptr, bool gated_layer_bias = false,
                            bool non_gated_layer_bias = false)
      : act_fn_(std::move(act_fn)),
        gated_layer_bias_(gated_layer_bias),
        non_gated_layer_bias_(non_gated_layer_bias) {}

  std::string name() const override { return "GatedLinearUnits"; }
  Needs needs() const override { return {.required_on_load = true}; }
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

 private:
  std::shared_ptr<Layer> act_fn_;
  bool gated_layer_bias_, non_gated_layer_bias_;
};

}  // namespace tutti
