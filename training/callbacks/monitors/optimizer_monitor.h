#pragma once

#include <optional>

#include "tensors/exact_sum.h"
#include "training/engine/callback.h"

namespace tutti {

// Logs the learning rates of every step, of each group of parameters (Optimizer::group_lrs): "lr-SGD/group0".
// composer.callbacks.LRMonitor.
class LrMonitor final : public Callback {
 public:
  std::string name() const override { return "LRMonitor"; }
  void batch_end(State& state, Logger& logger) override;
};

// Logs, every batch_log_interval batches, the L2 norm of each parameter's gradient as received by the
// optimizer, and of all gradients together ("l2_norm/grad/fc.weight", "l2_norm/grad/global"). With
// log_optimizer_metrics also Optimizer::norms: "l2_norm/moment/...", "param", "update".
// composer.callbacks.OptimizerMonitor.
class OptimizerMonitor final : public Callback {
 public:
  OptimizerMonitor(bool log_optimizer_metrics, int64_t batch_log_interval)
      : log_optimizer_metrics_(log_optimizer_metrics), batch_log_interval_(batch_log_interval) {}

  std::string name() const override { return "OptimizerMonitor"; }
  void after_train_batch(State& state, Logger& logger) override;
  void batch_end(State& state, Logger& logger) override;

 private:
  bool log_optimizer_metrics_;
  int64_t batch_log_interval_;
  std::vector<std::optional<ExactSum>> gradients_;  // squares, by view; none = no gradient
  double grad_scale_ = 1.0;                         // of these gradients
};

}  // namespace tutti
