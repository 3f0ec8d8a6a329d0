#pragma once

#include "models/layers/layer.h"
#include "tensors/tree.h"
#include "training/engine/periodic_callback.h"

namespace tutti {

// Logs statistics of each layer's inputs and outputs in the first microbatch of the first batch, and of the
// batch after each `interval`: L2 norm, mean, kurtosis and maximum over the last dimension, averaged over the
// other dimensions. Names: "activations/l2_norm/fc1_input.0", "activations/max/fc1_output.0", a number per
// tensor; Composer's ActivationMonitor logs a number per sample.
class ActivationMonitor final : public PeriodicCallback {
 public:
  // Skips layers with names that contain one of `ignored`.
  ActivationMonitor(const Time& interval, std::vector<std::string> ignored)
      : PeriodicCallback(interval), ignored_(std::move(ignored)) {}

  std::string name() const override { return "ActivationMonitor"; }
  void fit_start(State& state, Logger& logger) override;
  void after_dataloader(State& state, Logger& logger) override;
  void before_train_batch(State& state, Logger& logger) override;
  void before_forward(State& state, Logger& logger) override;
  void after_forward(State& state, Logger& logger) override;
  void after_train_batch(State& state, Logger& logger) override;
  void batch_end(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  void interval_passed(const State&) override { due_ = true; }
  bool ignores(const std::string& layer) const;
  void measure(const std::string& name, const TensorTree& values);

  std::vector<std::string> ignored_;
  std::vector<Slot::Hook> hooks_;
  bool due_ = true;  // measure the next batch

  // State of the current attempt at a step.
  bool first_ = false;  // the first microbatch is still to come
  bool watching_ = false;
  bool logged_ = false;  // the first pass is logged
  LoggedMetrics measured_;
};

}  // namespace tutti
