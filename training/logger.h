#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace tutti {

// "metrics/eval/MulticlassAccuracy" -> 0.97
using LoggedMetrics = std::vector<std::pair<std::string, double>>;
using Hyperparameter = std::variant<bool, int64_t, double, std::string>;
using LoggedHyperparameters = std::vector<std::pair<std::string, Hyperparameter>>;

// Which algorithms ran at an event, and which were asked: "algorithm_traces/EMA/batch_end" -> 1 or 0.
using LoggedTraces = std::vector<std::pair<std::string, int>>;

struct LoggedText {
  std::string name, text;
};
struct LoggedTable {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

// Where algorithms and callbacks say what they want to be seen. Never blocks and never throws: what becomes
// of it is the destinations' affair (training/logger_destination.h).
class Logger {
 public:
  virtual ~Logger() = default;

  virtual void log_hyperparameters(const LoggedHyperparameters&) {}
  virtual void log_metrics(const LoggedMetrics&) {}
  virtual void log_traces(const LoggedTraces&) {}
  virtual void log_text(const LoggedText&) {}
  virtual void log_table(const LoggedTable&) {}
};

}  // namespace tutti
