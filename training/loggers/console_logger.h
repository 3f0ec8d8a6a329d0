#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "training/logger_destination.h"

namespace tutti {

// Prints metrics every so often, each as it was last logged: composer.loggers.ConsoleLogger.
class ConsoleLogger final : public LoggerDestination {
 public:
  // `log_interval` in any unit; `out` may be null: prints nothing.
  ConsoleLogger(const Time& log_interval, std::FILE* out, bool log_traces);

  std::string name() const override { return "ConsoleLogger"; }
  void open(const LogStart& start) override;
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;
  void log_text(const LoggedText& text, const LogTime& time) override;
  void step_end(const LogTime& time) override;
  bool finish(bool late) override;

 private:
  void keep(LoggedMetrics& among, const std::string& name, double value);
  void print(LoggedMetrics& metrics, const char* prefix);
  std::string progress() const;

  Time log_interval_;
  std::FILE* out_;
  bool log_traces_;
  LogStart start_;
  std::optional<Interval> every_;
  Timestamp now_;
  LoggedMetrics train_, eval_;  // not printed yet
};

}  // namespace tutti
