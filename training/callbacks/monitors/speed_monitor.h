#pragma once

#include <deque>
#include <string>

#include "training/callbacks/options.h"
#include "training/engine/callback.h"

namespace tutti {

// Peak floating-point operations per second of a GPU (NVIDIA's data sheets, dense) at a precision ("fp32",
// "amp_bf16"), by the driver's device name ("NVIDIA A100-SXM4-40GB"). 0 = unknown.
double peak_flops(const std::string& device_name, const std::string& precision);

// Logs after each batch the throughput over the last window_size batches ("throughput/samples_per_sec";
// batches; the model's counted tokens and floating-point operations; also per "device"), and the seconds of
// training and evaluation ("time/train", "time/val", "time/total"). composer.callbacks.SpeedMonitor.
class SpeedMonitor final : public Callback {
 public:
  using Options = SpeedMonitorOptions;

  explicit SpeedMonitor(const Options& options);

  std::string name() const override { return "SpeedMonitor"; }
  void batch_end(State& state, Logger& logger) override;
  void eval_end(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  struct Moment {
    double samples = 0;
    double tokens = 0;
    double seconds = 0;
    double flops = 0;  // of the batch that ended at this moment
  };

  LoggedMetrics throughput(const State& state) const;

  Options options_;
  double divider_;
  double eval_seconds_ = 0;
  std::deque<Moment> window_;  // at most window_size + 1
};

}  // namespace tutti
