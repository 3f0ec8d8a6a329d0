#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "training/metrics/logged_metrics.h"

namespace tutti {

using Hyperparameter = std::variant<bool, int64_t, double, std::string>;
using LoggedHyperparameters = std::vector<std::pair<std::string, Hyperparameter>>;

// Algorithms that ran at an event: "algorithm_traces/EMA/batch_end" -> 1.
using LoggedTraces = std::vector<std::pair<std::string, int>>;

struct LoggedText {
  std::string name, text;
};
struct LoggedTable {
  std::string name;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

// The class of each pixel of an image.
struct LoggedMask {
  std::string name;  // "prediction", "ground_truth"
  int64_t height = 0, width = 0;
  std::vector<int32_t> classes;  // [images, height, width]
};
struct LoggedImages {
  std::string name;  // "Images/Train"
  int64_t count = 0, height = 0, width = 0;
  int64_t channels = 0;           // 1: grey; 3: red, green, blue
  std::vector<uint8_t> pixels;    // [count, height, width, channels]
  std::vector<LoggedMask> masks;  // of the same images
};

// Logging for algorithms and callbacks. Never blocks, never throws; destinations receive the records
// (training/loggers/logger_destination.h).
class Logger {
 public:
  virtual ~Logger() = default;

  virtual void log_hyperparameters(const LoggedHyperparameters&) {}
  virtual void log_metrics(const LoggedMetrics&) {}
  virtual void log_traces(const LoggedTraces&) {}
  virtual void log_text(const LoggedText&) {}
  virtual void log_table(const LoggedTable&) {}
  virtual void log_images(const LoggedImages&) {}  // see training/loggers/logged_images.h

  // False if all records but metrics and tables are dropped: expensive records need not be made.
  virtual bool has_destinations() const { return true; }
};

}  // namespace tutti
