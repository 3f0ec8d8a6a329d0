#pragma once

#include <string>

#include "training/engine/callback.h"
#include "training/engine/logger.h"

namespace tutti {

// Load of this machine, read from Linux's /proc and the statistics of the root file system. Names and
// meanings are psutil's; unavailable figures are left out.
class SystemMetrics {
 public:
  explicit SystemMetrics(std::string proc = "/proc") : proc_(std::move(proc)) {}

  // "cpu_percentage" (since the last call; 0 at first), "cpu_memory_...", "disk_memory_..." (bytes and
  // percent), "network_..." (since boot, all interfaces together).
  LoggedMetrics read();

 private:
  void add_cpu(LoggedMetrics& metrics);
  void add_memory(LoggedMetrics& metrics) const;
  void add_network(LoggedMetrics& metrics) const;

  std::string proc_;
  double busy_ = -1;  // processor ticks; below 0 = not read yet
  double all_ = 0;
};

// Logs SystemMetrics at the start of batches of training, evaluation and prediction.
// composer.callbacks.SystemMetricsMonitor.
class SystemMetricsMonitor final : public Callback {
 public:
  std::string name() const override { return "SystemMetricsMonitor"; }
  void batch_start(State&, Logger& logger) override { logger.log_metrics(metrics_.read()); }
  void eval_batch_start(State&, Logger& logger) override { logger.log_metrics(metrics_.read()); }
  void predict_batch_start(State&, Logger& logger) override { logger.log_metrics(metrics_.read()); }

 private:
  SystemMetrics metrics_;  // state of the machine, not of the run: a retried step reads again
};

}  // namespace tutti
