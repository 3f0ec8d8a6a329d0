#pragma once

#include "training/callbacks/monitors/system_metrics.h"
#include "training/engine/callback.h"

namespace tutti {

// Logs SystemMetrics where a batch begins, in training, evaluation and prediction.
// composer.callbacks.SystemMetricsMonitor.
class SystemMetricsMonitor final : public Callback {
 public:
  std::string name() const override { return "SystemMetricsMonitor"; }
  void batch_start(State&, Logger& logger) override { logger.log_metrics(metrics_.look()); }
  void eval_batch_start(State&, Logger& logger) override { logger.log_metrics(metrics_.look()); }
  void predict_batch_start(State&, Logger& logger) override { logger.log_metrics(metrics_.look()); }

 private:
  SystemMetrics metrics_;  // of the machine, not of the run: a step that is done again is looked at again
};

}  // namespace tutti
