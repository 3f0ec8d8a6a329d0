#pragma once

#include <string>

#include "runtime/disk.h"
#include "training/callbacks/options.h"
#include "training/engine/periodic_callback.h"

namespace tutti {

// This rank's memory in bytes by the meter, a line each: parameters, gradients, buffers, optimizer state,
// the rest, and the peak of the step.
std::string memory_account(const State& state);

// Writes a file each time a step runs out of memory: who asked for how many bytes, and how memory was used.
// composer.callbacks.OOMObserver.
class OomObserver final : public Callback {
 public:
  OomObserver(Disk& disk, MemoryFile file) : disk_(disk), file_(std::move(file)) {}

  std::string name() const override { return "OOMObserver"; }
  void out_of_memory(State& state, Logger& logger, const std::string& account) override;

 private:
  Disk& disk_;
  MemoryFile file_;
};

// Writes the use of this rank's memory every `interval`, after skip_batches.
// composer.callbacks.MemorySnapshot.
class MemorySnapshot final : public PeriodicCallback {
 public:
  MemorySnapshot(Disk& disk, MemoryFile file, const Time& interval, int64_t skip_batches)
      : PeriodicCallback(interval), disk_(disk), file_(std::move(file)), skip_batches_(skip_batches) {}

  std::string name() const override { return "MemorySnapshot"; }

 private:
  void interval_passed(const State& state) override;

  Disk& disk_;
  MemoryFile file_;
  int64_t skip_batches_;
};

}  // namespace tutti
