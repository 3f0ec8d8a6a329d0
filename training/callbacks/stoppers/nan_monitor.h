#pragma once

#include "training/engine/callback.h"

namespace tutti {

// Ends the run with an error on all ranks when the loss of a batch is not a number.
// composer.callbacks.NaNMonitor.
class NaNMonitor final : public Callback {
 public:
  std::string name() const override { return "NaNMonitor"; }
  // Throws OperatingError, before the optimizer takes the step.
  void after_train_batch(State& state, Logger& logger) override;
};

}  // namespace tutti
