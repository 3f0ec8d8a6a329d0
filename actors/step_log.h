#pragma once

#include <cstddef>
#include <string>
#include <unordered_map>
#include <utility>

#include "training/logger.h"

namespace tutti {

// Gathers what is logged at one step, for one message to the Reporter. A metric logged twice has its last
// value.
class StepLog final : public Logger {
 public:
  explicit StepLog(bool keeps) : keeps_(keeps) {}  // false: nobody on this rank reads it

  void log_metrics(const LoggedMetrics& metrics) override;
  void log_traces(const LoggedTraces& traces) override;

  LoggedMetrics take() {
    places_.clear();
    return std::exchange(metrics_, {});
  }

 private:
  bool keeps_;
  LoggedMetrics metrics_;
  std::unordered_map<std::string, std::size_t> places_;  // in metrics_
};

}  // namespace tutti
