#pragma once

#include "tensors/tree.h"
#include "training/callbacks/writers/file_names.h"
#include "training/engine/callback.h"

namespace tutti {

// Logs of the first batch, and of each that follows the end of an `interval`, what goes into each layer of
// the model and what comes out of it in the first microbatch: over the last dimension the L2 norm, mean,
// kurtosis and maximum, averaged over the others. "activations/l2_norm/fc1_input.0",
// "activations/max/fc1_output.0": one a tensor, where Composer's ActivationMonitor logs one a sample of it.
class ActivationMonitor final : public Callback {
 public:
  // Layers whose names contain one of `ignored` are left out.
  ActivationMonitor(const Time& interval, std::vector<std::string> ignored)
      : interval_(interval), ignored_(std::move(ignored)) {}

  std::string name() const override { return "ActivationMonitor"; }
  void fit_start(State& state, Logger& logger) override;
  void after_dataloader(State& state, Logger& logger) override;
  void before_train_batch(State& state, Logger& logger) override;
  void before_forward(State& state, Logger& logger) override;
  void after_forward(State& state, Logger& logger) override;
  void after_train_batch(State& state, Logger& logger) override;
  void batch_end(State& state, Logger& logger) override;
  void epoch_end(State& state, Logger& logger) override;
  void iteration_end(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  bool ignores(const std::string& layer) const;
  void measure(const std::string& name, const TensorTree& values);

  Due interval_;
  std::vector<std::string> ignored_;
  bool hooked_ = false;
  bool due_ = true;  // the next batch is to be looked at

  // Of the attempt at a step that is under way.
  bool first_ = false;  // its first microbatch is still to come
  bool watching_ = false;
  bool logged_ = false;  // those of its first pass
  LoggedMetrics measured_;
};

}  // namespace tutti
