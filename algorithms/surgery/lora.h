#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/surgery/options.h"
#include "models/hub/adapter.h"
#include "models/layers/layer.h"
#include "training/engine/algorithm.h"

namespace tutti {

// A Linear or Conv1D and its adapter: y = base(x) + scaling * B A dropout(x), with A [r, in] and B [out, r]
// (Hu et al. 2021, arXiv:2106.09685). The weights of the base keep their names; the adapter's are
// "lora_A.weight" and "lora_B.weight". A starts as nn.Linear's weights do, B is zero, as in PEFT.
class LoraLayer final : public Layer {
 public:
  LoraLayer(const std::shared_ptr<Layer>& base, const LoraOptions& options);
  TensorTree forward(const TensorTree& input) override;
  const char* kind() const override { return "LoraLayer"; }

 private:
  const double scaling_;
  Slot& base_;
  Slot& dropout_;
  Slot& lora_A_;
  Slot& lora_B_;
};

// True if a parameter is of a layer that `modules_to_save` names.
bool is_of_saved_module(const LoraOptions& options, const std::string& parameter);

// Gives each target an adapter, and freezes all other parameters outside modules_to_save. Returns the names
// of the targets. Call materialise afterwards. Throws UserError if no layer has a name of the options.
std::vector<std::string> apply_lora(Layer& model, const LoraOptions& options = {});

// apply_lora at INIT. Before a checkpoint is loaded, the adapter of the options' folder, if any, is read
// (algorithms/surgery/peft_adapter.h). As peft.LoraConfig with bias = "none".
class Lora final : public Algorithm {
 public:
  explicit Lora(LoraOptions options = {}) : options_(std::move(options)) {}
  std::string name() const override { return kLora; }
  Needs needs() const override {
    return {.after = {"Alibi", "Factorize", "GatedLinearUnits", "SqueezeExcite"},
            .excludes = {{kLora, "a layer has one adapter"}},
            .required_on_load = true};
  }
  bool match(Event event, const State&) const override {
    return event == Event::kInit || (event == Event::kBeforeLoad && options_.adapter);
  }
  void apply(Event event, State& state, Logger& logger) override;

 private:
  const LoraOptions options_;
};

}  // namespace tutti
