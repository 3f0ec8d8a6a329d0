#include "training/loggers/step_log.h"

namespace tutti {

void StepLog::log_metrics(const LoggedMetrics& metrics) {
  keep(metrics);
  for (const auto& [name, value] : metrics) keep_for_reporter(name, value);
}

void StepLog::log_traces(const LoggedTraces& traces) {
  keep(traces);
  for (const auto& [name, ran] : traces) keep_for_reporter(name, ran);
}

void StepLog::keep(decltype(LogEntry::what) what) {
  if (readers_.destinations) entries_.push_back({{step_, now_}, std::move(what)});
}

void StepLog::keep_for_reporter(const std::string& name, double value) {
  if (!readers_.reporter) return;
  const auto [place, fresh] = places_.try_emplace(name, metrics_.size());
  if (fresh)
    metrics_.emplace_back(name, value);
  else
    metrics_[place->second].second = value;
}

void StepLog::begin_run(int64_t step) {
  step_ = step;
  for (auto& entry : entries_) entry.time = {step, now_};
}

LoggedMetrics StepLog::take() {
  places_.clear();
  return std::exchange(metrics_, {});
}

}  // namespace tutti
