#pragma once

#include "tensors/tree.h"
#include "training/callback.h"
#include "training/time.h"

namespace tutti {

// Logs every `interval` (batches or epochs), of that batch's first microbatch, what goes into each layer of
// the model and what comes out of it: over the last dimension the L2 norm, mean, kurtosis and maximum,
// averaged over the others. "activations/l2_norm/fc1_input.0", "activations/max/fc1_output.0": one a tensor,
// where Composer's ActivationMonitor logs one a sample of it.
class ActivationMonitor final : public Callback {
 public:
  // Layers whose names contain one of `ignored` are left out. Throws UserError for an interval in another
  // unit.
  ActivationMonitor(const Time& interval, std::vector<std::string> ignored);

  std::string name() const override { return "ActivationMonitor"; }
  void fit_start(State& state, Logger& logger) override;
  void before_train_batch(State& state, Logger& logger) override;
  void before_forward(State& state, Logger& logger) override;
  void after_forward(State& state, Logger& logger) override;
  void after_train_batch(State& state, Logger& logger) override;

  std::string state() const override;
  void restore(const std::string& json) override;

 private:
  bool ignores(const std::string& layer) const;
  int64_t now(const State& state) const;
  void measure(const std::string& name, const TensorTree& values);

  Time interval_;
  std::vector<std::string> ignored_;
  int64_t logged_at_ = -1;  // in the interval's unit

  // Of the attempt at a step that is under way.
  bool due_ = false;
  bool watching_ = false;
  LoggedMetrics measured_;
};

}  // namespace tutti
