#pragma once

#include <deque>
#include <string>

#include "training/engine/callback.h"

namespace tutti {

// Floating-point operations a second that a GPU's maker promises (NVIDIA's data sheets, dense) at a precision
// ("fp32", "amp_bf16"), by the name that its driver gives ("NVIDIA A100-SXM4-40GB"). 0 where not known.
double peak_flops(const std::string& device_name, const std::string& precision);

// Logs after each batch how fast training is, over the last window_size batches
// ("throughput/samples_per_sec", batches, tokens where there are any, floating-point operations where the
// model counts them, and all of them for one "device"), and the seconds of training and evaluation
// ("time/train", "time/val", "time/total"). composer.callbacks.SpeedMonitor.
class SpeedMonitor final : public Callback {
 public:
  struct Options {
    int64_t window_size = 100;
    double gpu_flops_available = 0.0;  // a second, of one device; 0 = peak_flops() of it
    std::string time_unit = "hours";
  };

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
    double flops = 0;  // of the batch that ends here
  };

  LoggedMetrics throughput(const State& state) const;

  Options options_;
  double divider_;
  double eval_seconds_ = 0;
  std::deque<Moment> window_;  // window_size + 1 at most
};

}  // namespace tutti
