#pragma once

#include <string>

#include "runtime/disk.h"
#include "training/engine/periodic_callback.h"

namespace tutti {

// Writes the weights and buffers of evaluations as a safetensors file at the end of training and, with an
// `interval` above 0, also in between. Rank 0 only. composer.callbacks.ExportForInferenceCallback.
class ExportForInference final : public PeriodicCallback {
 public:
  // `save_path`: see file_name.
  ExportForInference(Disk& disk, std::string save_path, const Time& interval)
      : PeriodicCallback(interval), disk_(disk), save_path_(std::move(save_path)) {}

  std::string name() const override { return "ExportForInference"; }
  void fit_end(State& state, Logger&) override { write(state); }

 private:
  void interval_passed(const State& state) override { write(state); }
  void write(const State& state);

  Disk& disk_;
  std::string save_path_;
};

}  // namespace tutti
