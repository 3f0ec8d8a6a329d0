#pragma once

#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {

// Lets go of the model's outputs once the loss is known, for the memory of the backward pass; later events of
// the microbatch find none. composer.callbacks.FreeOutputs.
class FreeOutputs final : public Callback {
 public:
  std::string name() const override { return "FreeOutputs"; }
  void after_loss(State& state, Logger&) override { state.outputs = {}; }
};

}  // namespace tutti
