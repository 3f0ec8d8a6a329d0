#include "actors/step_log.h"

#include <algorithm>

namespace tutti {

void StepLog::log_metrics(const LoggedMetrics& metrics) {
  if (!keeps_) return;
  for (const auto& [name, value] : metrics) {
    const auto known = std::find_if(metrics_.begin(), metrics_.end(),
                                    [&name = name](const auto& one) { return one.first == name; });
    if (known == metrics_.end())
      metrics_.emplace_back(name, value);
    else
      known->second = value;
  }
}

void StepLog::log_traces(const LoggedTraces& traces) {
  for (const auto& [name, ran] : traces) log_metrics({{name, ran}});
}

}  // namespace tutti
