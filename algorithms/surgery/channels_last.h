#pragma once

#include "algorithms/surgery/options.h"
#include "models/layers/layer.h"
#include "training/engine/algorithm.h"

namespace tutti {

// Lays every parameter and buffer of 4 dimensions out as [N, H, W, C] in memory (torch's channels_last), with
// or without values; shapes and values stay. Outputs of convolutions then have this layout too, and so have
// outputs of most later layers. Returns the number of tensors that have changed.
// composer.functional.apply_channels_last.
int apply_channels_last(Layer& model);

// apply_channels_last at INIT, when all other surgery is done. composer.algorithms.ChannelsLast.
class ChannelsLast final : public Algorithm {
 public:
  std::string name() const override { return "ChannelsLast"; }
  Needs needs() const override { return {.last = true}; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event event, State& state, Logger& logger) override;
};

}  // namespace tutti
