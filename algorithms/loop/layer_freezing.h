#pragma once

#include <cstdint>

#include "algorithms/loop/options.h"
#include "models/layers/layer.h"
#include "training/engine/algorithm.h"

namespace tutti {

struct FrozenLayers {
  int64_t depth = 0;    // layers
  double fraction = 0;  // of all layers but the last, before rounding
};

// Freezes the first layers of a model, more of them as training goes on: none up to `freeze_start`, then in
// proportion to the time, `freeze_level` of them at the end; times are fractions of the training in [0, 1].
// Layers are those without layers within and with parameters, depth first; the last one is never frozen.
// Parameters of frozen layers require no gradient and lose the one that they have, so backward ends behind
// them and optimizers leave them as they are: no momentum, no weight decay. Running statistics go on.
// composer.functional.freeze_layers.
FrozenLayers freeze_layers(Layer& model, double current_duration, double freeze_start = 0.5,
                           double freeze_level = 1.0);

// freeze_layers at the end of each epoch, and in a resumed run, which freezes what its checkpoint had frozen.
// The gradients of frozen layers are not reduced. Logs "layer_freezing/layers_frozen" and
// "layer_freezing/percentage_frozen". composer.algorithms.LayerFreezing.
class LayerFreezing final : public Algorithm {
 public:
  explicit LayerFreezing(double freeze_start = 0.5, double freeze_level = 1.0)
      : start_(freeze_start), level_(freeze_level) {}

  std::string name() const override { return "LayerFreezing"; }
  void require(const State& state) const override;  // warns, if it freezes nothing before the end
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

  std::string state() const override { return depth_ > 0 ? std::to_string(depth_) : ""; }
  void restore(const std::string& text) override;

 private:
  double start_, level_;
  int64_t depth_ = 0;  // frozen layers
};

}  // namespace tutti
