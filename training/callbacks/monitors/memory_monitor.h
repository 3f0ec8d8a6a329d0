#pragma once

#include <string>
#include <utility>
#include <vector>

#include "recipe/setting.h"
#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {

// Logs after each batch what this rank's tensors take and took at most within it, in GB, as the meter counts
// them: "memory/current_allocated_mem", "memory/peak_allocated_mem". composer.callbacks.MemoryMonitor, which
// logs nothing on a CPU.
class MemoryMonitor final : public Callback {
 public:
  // What is logged, and under which name: {"allocated_bytes.all.peak", "peak_allocated_mem"}. "bytes" in a
  // name becomes "gigabytes", as in Composer.
  using Keys = std::vector<std::pair<std::string, std::string>>;

  explicit MemoryMonitor(Keys keys = composers_keys()) : keys_(std::move(keys)) {}

  static Keys composers_keys();               // those of Composer's that the meter knows
  static Keys keys_of(const Setting& table);  // a recipe's; UserError for what the meter does not know

  std::string name() const override { return "MemoryMonitor"; }
  void after_train_batch(State& state, Logger& logger) override;

 private:
  Keys keys_;
};

// Lets go of the model's outputs once the loss is known, for the memory of the backward pass; later events of
// the microbatch find none. composer.callbacks.FreeOutputs.
class FreeOutputs final : public Callback {
 public:
  std::string name() const override { return "FreeOutputs"; }
  void after_loss(State& state, Logger&) override { state.outputs = {}; }
};

}  // namespace tutti
