#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "training/loggers/logger_destination.h"

namespace tutti {

struct StepEnded {};

// One call of a LoggerDestination.
struct LogEntry {
  LogTime time;
  std::variant<LoggedMetrics, LoggedHyperparameters, LoggedTraces, LoggedText, LoggedTable, LoggedImages,
               StepEnded>
      what;

  void tell(LoggerDestination& destination) const;
  bool is_record() const { return !std::holds_alternative<StepEnded>(what); }
};

// Several destinations read them at once.
using LogEntries = std::shared_ptr<const std::vector<LogEntry>>;

int64_t records_in(const std::vector<LogEntry>& entries);

}  // namespace tutti
