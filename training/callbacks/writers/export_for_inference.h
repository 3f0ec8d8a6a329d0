#pragma once

#include <string>

#include "runtime/disk.h"
#include "training/callbacks/writers/file_names.h"
#include "training/engine/callback.h"

namespace tutti {

// Writes the weights, buffers too, as a safetensors file when the training is over, and with an `interval`
// above 0 on the way as well. Rank 0 alone. composer.callbacks.ExportForInferenceCallback.
class ExportForInference final : public Callback {
 public:
  // save_path: see file_name.
  ExportForInference(Disk& disk, std::string save_path, const Time& interval)
      : disk_(disk), save_path_(std::move(save_path)), due_(interval) {}

  std::string name() const override { return "ExportForInference"; }
  void batch_end(State& state, Logger& logger) override;
  void epoch_end(State& state, Logger& logger) override;
  void iteration_end(State& state, Logger& logger) override;
  void fit_end(State& state, Logger& logger) override;

 private:
  void write(const State& state);

  Disk& disk_;
  std::string save_path_;
  Due due_;
};

}  // namespace tutti
