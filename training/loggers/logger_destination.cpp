#include "training/loggers/logger_destination.h"

#include <algorithm>
#include <numeric>

namespace tutti {
namespace {

struct EntryLogger {
  LoggerDestination& to;
  const LogTime& time;

  void operator()(const LoggedMetrics& metrics) const { to.log_metrics(metrics, time); }
  void operator()(const LoggedHyperparameters& all) const { to.log_hyperparameters(all, time); }
  void operator()(const LoggedTraces& traces) const { to.log_traces(traces, time); }
  void operator()(const LoggedText& text) const { to.log_text(text, time); }
  void operator()(const LoggedTable& table) const { to.log_table(table, time); }
  void operator()(const LoggedImages& images) const { to.log_images(images, time); }
  void operator()(const StepReport& report) const { to.log_step(report, time); }
  void operator()(const EvaluationLogged& logged) const { to.log_evaluation(logged.metrics, time); }
  void operator()(const TrainerMetrics& logged) const { to.log_trainer_metrics(logged.metrics, time); }
  void operator()(const TrainingEnded& ended) const { to.log_training_end(ended, time); }
  void operator()(const ClosingText& closing) const { to.log_closing_text(closing.text); }
  void operator()(const EvaluationDue&) const { to.evaluation_due(time); }
  void operator()(const StepEnded&) const { to.step_end(time); }
};

constexpr int64_t kNamedNumber = 100;  // bytes

template <class What>
int64_t bytes_of(const What& what) {
  int64_t bytes = 0;
  if constexpr (requires { what.pixels; }) {
    bytes = std::ssize(what.pixels);
    for (const LoggedMask& mask : what.masks)
      bytes += std::ssize(mask.classes) * static_cast<int64_t>(sizeof(mask.classes[0]));
  } else if constexpr (requires { what.rows; }) {
    for (const auto& row : what.rows)
      for (const auto& cell : row) bytes += kNamedNumber + std::ssize(cell);
  } else if constexpr (requires { what.text; }) {
    bytes = std::ssize(what.text);
  } else if constexpr (requires { what.metrics; }) {
    bytes = kNamedNumber * std::ssize(what.metrics);
  } else if constexpr (requires { what.size(); }) {
    bytes = kNamedNumber * std::ssize(what);
  }
  return static_cast<int64_t>(sizeof(LogEntry)) + bytes;
}

}  // namespace

void LoggerDestination::log_step(const StepReport& report, const LogTime& time) {
  const auto size = static_cast<double>(report.device_train_microbatch_size);
  LoggedMetrics all = {{"trainer/device_train_microbatch_size", size}, {"loss/train/total", report.loss}};
  all.insert(all.end(), report.metrics.begin(), report.metrics.end());
  log_metrics(all, time);
}

void LogEntry::log_to(LoggerDestination& destination) const {
  std::visit(EntryLogger{destination, time}, what);
}

bool LogEntry::is_record() const {
  return !std::holds_alternative<StepEnded>(what) && !std::holds_alternative<EvaluationDue>(what) &&
         !std::holds_alternative<ClosingText>(what) && !std::holds_alternative<TrainingEnded>(what);
}

int64_t records_in(const std::vector<LogEntry>& entries) {
  return std::ranges::count_if(entries, &LogEntry::is_record);
}

int64_t bytes_in(const std::vector<LogEntry>& entries) {
  return std::accumulate(entries.begin(), entries.end(), int64_t{0}, [](int64_t sum, const LogEntry& entry) {
    return sum + std::visit([](const auto& what) { return bytes_of(what); }, entry.what);
  });
}

}  // namespace tutti
