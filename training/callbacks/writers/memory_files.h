#pragma once

#include <string>

#include "runtime/disk.h"
#include "training/callbacks/writers/file_names.h"
#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {

// What holds this rank's memory now, a line each: parameters, gradients, buffers, the optimizer's state, the
// rest, and what was taken at most within the step. In bytes, as the meter counts them.
std::string memory_account(const State& state);

// Where the two below write: see file_name.
struct MemoryFile {
  std::string folder = "memory";
  std::string filename;
  bool overwrite = false;
};

// Writes, each time that a step runs out of memory, who asked for how much and what held this rank's memory.
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

// Writes what holds this rank's memory every `interval`, once skip_batches are over.
// composer.callbacks.MemorySnapshot.
class MemorySnapshot final : public Callback {
 public:
  MemorySnapshot(Disk& disk, MemoryFile file, const Time& interval, int64_t skip_batches)
      : disk_(disk), file_(std::move(file)), due_(interval), skip_batches_(skip_batches) {}

  std::string name() const override { return "MemorySnapshot"; }
  void batch_end(State& state, Logger& logger) override;
  void epoch_end(State& state, Logger& logger) override;
  void iteration_end(State& state, Logger& logger) override;

 private:
  void write(const State& state);

  Disk& disk_;
  MemoryFile file_;
  Due due_;
  int64_t skip_batches_;
};

}  // namespace tutti
