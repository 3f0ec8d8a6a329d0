#pragma once

#include <string>

#include "training/engine/callback.h"
#include "training/engine/logger.h"

namespace tutti {

// What this machine does besides training, read from Linux's /proc and the root file system's statistics.
// Names and meanings are psutil's. What the system does not tell is left out.
class SystemMetrics {
 public:
  explicit SystemMetrics(std::string proc = "/proc") : proc_(std::move(proc)) {}

  // "cpu_percentage" (since the last look; 0 at the first), "cpu_memory_...", "disk_memory_..." (bytes, and
  // percent), "network_..." (since the machine's start, all interfaces together).
  LoggedMetrics look();

 private:
  void add_cpu(LoggedMetrics& metrics);
  void add_memory(LoggedMetrics& metrics) const;
  void add_network(LoggedMetrics& metrics) const;

  std::string proc_;
  double busy_ = -1;  // of all processors, in ticks; below 0 = not looked yet
  double all_ = 0;
};

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
