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

// Freezes the first layers of a model: none until `freeze_start`, then in proportion to the time, up to
// `freeze_level` of the layers at the end. Times are fractions of the training in [0, 1]. Counted, depth
// first, are layers that have parameters and no layers inside; the last is never frozen. Parameters of frozen
// layers require no gradient and lose their gradient: backward stops there, and optimizers leave frozen
// parameters unchanged (no momentum, no weight decay). Running statistics are still updated.
// composer.functional.freeze_layers.
FrozenLayers freeze_layers(Layer& model, double current_duration, double freeze_start = 0.5,
                           double freeze_level = 1.0);

// Calls freeze_layers at the end of each epoch. A resumed run freezes the layers that were frozen in its
// checkpoint. The gradients of frozen layers are not reduced. Logs "layer_freezing/layers_frozen" and
// "layer_freezing/percentage_frozen". composer.algorithms.LayerFreezing.
class LayerFreezing final : public Algorithm {
 public:
  explicit LayerFreezing(double freeze_start = 0.5, double freeze_level = 1.0)
      : start_(freeze_start), level_(freeze_level) {}

  std::string name() const override { return "LayerFreezing"; }
  void require(const State& state) const override;  // warns if no layer is frozen before the end
  bool match(Event event, const State& state) const override;
  void apply(Event event, State& state, Logger& logger) override;

  std::string state() const override { return depth_ > 0 ? std::to_string(depth_) : ""; }
  void restore(const std::string& text) override;

 private:
  double start_, level_;
  int64_t depth_ = 0;  // frozen layers
};

}  // namespace tutti
