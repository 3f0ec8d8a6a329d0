#include "training/loggers/logger_destination.h"

#include <algorithm>

namespace tutti {
namespace {

struct Teller {
  LoggerDestination& to;
  const LogTime& time;

  void operator()(const LoggedMetrics& metrics) const { to.log_metrics(metrics, time); }
  void operator()(const LoggedHyperparameters& all) const { to.log_hyperparameters(all, time); }
  void operator()(const LoggedTraces& traces) const { to.log_traces(traces, time); }
  void operator()(const LoggedText& text) const { to.log_text(text, time); }
  void operator()(const LoggedTable& table) const { to.log_table(table, time); }
  void operator()(const LoggedImages& images) const { to.log_images(images, time); }
  void operator()(const StepEnded&) const { to.step_end(time); }
};

}  // namespace

void LogEntry::tell(LoggerDestination& destination) const { std::visit(Teller{destination, time}, what); }

int64_t records_in(const std::vector<LogEntry>& entries) {
  return std::ranges::count_if(entries, &LogEntry::is_record);
}

}  // namespace tutti
