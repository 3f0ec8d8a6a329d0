#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "training/loggers/logger_destination.h"

namespace tutti {

// What the Trainer logs itself.
struct EvaluationLogged {
  LoggedMetrics metrics;
};
struct TrainerMetrics {
  LoggedMetrics metrics;
};
struct ClosingText {
  std::string text;
};
struct EvaluationDue {};
struct StepEnded {};

// One call of a LoggerDestination.
struct LogEntry {
  LogTime time;
  std::variant<LoggedMetrics, LoggedHyperparameters, LoggedTraces, LoggedText, LoggedTable, LoggedImages,
               StepReport, EvaluationLogged, TrainerMetrics, ClosingText, EvaluationDue, StepEnded>
      what;

  void tell(LoggerDestination& destination) const;
  bool is_record() const;
};

// Several destinations read them at once.
using LogEntries = std::shared_ptr<const std::vector<LogEntry>>;

int64_t records_in(const std::vector<LogEntry>& entries);

}  // namespace tutti
