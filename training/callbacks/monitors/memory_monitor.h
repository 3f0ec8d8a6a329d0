#pragma once

#include "training/callback.h"

namespace tutti {

// Logs after each batch what this rank's tensors take and took at most within it, in GB, as the meter counts
// them: "memory/current_allocated_mem", "memory/peak_allocated_mem". composer.callbacks.MemoryMonitor, which
// logs nothing on a CPU.
class MemoryMonitor final : public Callback {
 public:
  std::string name() const override { return "MemoryMonitor"; }
  void after_train_batch(State& state, Logger& logger) override;
};

}  // namespace tutti
