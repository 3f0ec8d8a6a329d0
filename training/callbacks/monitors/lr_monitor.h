#pragma once

#include "training/engine/callback.h"

namespace tutti {

// Logs the rate of every step: "lr-SGD/group0". composer.callbacks.LRMonitor.
class LrMonitor final : public Callback {
 public:
  std::string name() const override { return "LRMonitor"; }
  void batch_end(State& state, Logger& logger) override;
};

}  // namespace tutti
