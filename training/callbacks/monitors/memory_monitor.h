#pragma once

#include <string>
#include <utility>
#include <vector>

#include "recipe/setting.h"
#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {

// Logs after each batch the current and peak memory of this rank's tensors in GB, as counted by the meter:
// "memory/current_allocated_mem", "memory/peak_allocated_mem"; on a device also its allocator's active,
// inactive and reserved bytes, and "memory/alloc_retries". composer.callbacks.MemoryMonitor, which logs
// nothing on a CPU.
class MemoryMonitor final : public Callback {
 public:
  // Figures and their logged names: {"allocated_bytes.all.peak", "peak_allocated_mem"}. As in Composer,
  // "bytes" in a name becomes "gigabytes".
  using Keys = std::vector<std::pair<std::string, std::string>>;

  explicit MemoryMonitor(Keys keys = composers_keys()) : keys_(std::move(keys)) {}

  static Keys composers_keys();               // Composer's defaults; a CPU has the first two
  static Keys keys_of(const Setting& table);  // from a recipe; throws UserError for unknown figures

  std::string name() const override { return "MemoryMonitor"; }
  void after_train_batch(State& state, Logger& logger) override;

 private:
  Keys keys_;
};

// Releases the model's outputs after the loss, to save memory in backward; later events of the microbatch
// see no outputs. composer.callbacks.FreeOutputs.
class FreeOutputs final : public Callback {
 public:
  std::string name() const override { return "FreeOutputs"; }
  void after_loss(State& state, Logger&) override { state.outputs = {}; }
};

}  // namespace tutti
