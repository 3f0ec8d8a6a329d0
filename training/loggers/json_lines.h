#pragma once

#include <string>

#include "training/loggers/logger_destination.h"

namespace tutti {

// Formats records as JSON lines, for `kind = "jsonl"` and the program of `kind = "command"`; described in
// docs/loggers.md.
class JsonLines : public LoggerDestination {
 public:
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;

 protected:
  virtual void line(const std::string& json) = 0;
  static std::string start_line(const LogStart& start);
};

// {"optimizer.lr": 0.1, ...}
std::string json_of(const LoggedHyperparameters& all);
std::string json_of(const LoggedTable& table);  // {"columns": [...], "rows": [[...], ...]}

}  // namespace tutti
