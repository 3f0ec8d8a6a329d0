#pragma once

#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "runtime/log.h"
#include "runtime/terminal_output.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// Prints the latest metrics and tables at an interval: composer.loggers.ConsoleLogger.
class ConsoleLogger final : public LoggerDestination {
 public:
  // `log_interval` in any unit; a null `out` prints no line. `warn` receives problems of the output.
  ConsoleLogger(const Time& log_interval, std::FILE* out, bool log_traces, Warn warn = nullptr);

  std::string name() const override { return "ConsoleLogger"; }
  void open(const LogStart& start) override;
  void log_step(const StepReport& report, const LogTime& time) override;
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;
  void step_end(const LogTime& time) override;
  void flush(bool) override { out_.flush(); }
  bool busy() const override { return out_.busy(); }
  Nanoseconds finishes_within() const override { return std::chrono::seconds(1); }
  bool finish(bool late) override;

 private:
  void set_latest(LoggedMetrics& metrics, const std::string& name, double value);
  void print_train();
  void print(LoggedMetrics& metrics, const char* prefix, const std::string& more = "");
  std::string progress() const;

  Time log_interval_;
  TerminalOutput out_;
  bool log_traces_;
  Warn warn_;
  LogStart start_;
  Time max_duration_;
  std::optional<Interval> every_;
  Timestamp now_;
  LoggedMetrics train_, eval_;                 // not printed yet
  std::map<std::string, std::string> tables_;  // as JSON, not printed yet
};

}  // namespace tutti
