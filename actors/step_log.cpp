#include "actors/step_log.h"

namespace tutti {

void StepLog::log_metrics(const LoggedMetrics& metrics) {
  if (!keeps_) return;
  for (const auto& [name, value] : metrics) {
    const auto [place, fresh] = places_.try_emplace(name, metrics_.size());
    if (fresh)
      metrics_.emplace_back(name, value);
    else
      metrics_[place->second].second = value;
  }
}

void StepLog::log_traces(const LoggedTraces& traces) {
  for (const auto& [name, ran] : traces) log_metrics({{name, ran}});
}

}  // namespace tutti
