#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "training/loggers/logger_destination.h"

namespace tutti {

// Keeps all records for the program, which may read from any thread at any time:
// composer.loggers.InMemoryLogger.
class InMemoryLogger final : public LoggerDestination {
 public:
  struct Point {
    LogTime time;
    double value = 0;
  };

  std::string name() const override { return "InMemoryLogger"; }
  void log_hyperparameters(const LoggedHyperparameters& all, const LogTime& time) override;
  void log_metrics(const LoggedMetrics& metrics, const LogTime& time) override;
  void log_traces(const LoggedTraces& traces, const LogTime& time) override;
  void log_text(const LoggedText& text, const LogTime& time) override;
  void log_table(const LoggedTable& table, const LogTime& time) override;
  void log_images(const LoggedImages& images, const LogTime& time) override;

  // The values of a metric or trace in order; empty for unknown names.
  std::vector<Point> get_timeseries(const std::string& name) const;
  std::vector<std::string> names() const;  // of metrics and traces, in order of first use
  LoggedHyperparameters hyperparameters() const;
  std::vector<LoggedTable> tables() const;
  std::vector<LoggedImages> images() const;
  std::vector<LogEntry> entries() const;  // everything

 private:
  template <class Kind>
  std::vector<Kind> all_of() const;
  void add(LogEntry entry);

  mutable std::mutex mutex_;
  std::vector<LogEntry> entries_;
};

}  // namespace tutti
