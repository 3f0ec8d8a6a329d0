#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io/formats/run_metrics.h"
#include "runtime/disk.h"
#include "runtime/log.h"
#include "training/loggers/logger_destination.h"

namespace tutti {

// The result of a run, and why its training ended: the table at the end of its output, and result.json in the
// run folder.
struct RunResult {
  LogStart start;
  TrainingEnded ended;
  Timestamp at;                    // of the end: finished batches and epochs
  std::optional<StepReport> last;  // none: this process trained no step
  RunMetrics metrics;              // evaluations of the whole run
  double wall_s = 0;               // of training and evaluations in this process
  double samples_per_s = 0;        // over its steps; 0 = unknown
  std::string checkpoint;          // the newest good one; "" = none

  // "max_duration of 20ep is reached". Says so if most steps of this process were skipped.
  std::string reason() const;
  // Labels and values, in the order shown.
  std::vector<std::pair<std::string, std::string>> rows() const;
  // One object on one line; docs/running.md lists its members.
  std::string json() const;

 private:
  std::string ending() const;
};

// Replaces result.json in the run folder; removes the file if `json` is "". Trouble is a warning.
void write_result(Disk& disk, const std::string& run_dir, const std::string& json, const Warn& warn);
// Writes the result of a run that ended with an error: "ended" is "error". `print`: also on standard output.
void leave_error(Disk& disk, const std::string& run_dir, const std::string& reason, bool print,
                 const Warn& warn);

// "3:07", "1:02:30" (hours, minutes, seconds).
std::string duration_text(double s);

// "12345", "0.12": three digits, and all before the point.
std::string rate_text(double rate);

}  // namespace tutti
