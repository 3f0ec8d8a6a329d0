#pragma once

#include <string>

#include "training/loggers/logger_destination.h"

namespace tutti {

// True for a figure of SystemMetricsMonitor: trackers show the machine apart from the training.
bool is_system_metric(const std::string& name);

// A name of a record as the path of a file, without the file's extension: "Images/Train" -> "Images/Train".
// Characters other than letters, digits and . _ - / become _; the path leads out of no folder.
std::string tracked_path(const std::string& name);

// The shortest text that gives back all bits; "NaN", "Infinity" and "-Infinity" for values that are no finite
// numbers.
std::string tracked_number(double value);

// A value as JSON.
std::string tracked_json(const Hyperparameter& value);

// Characters from a start's time and names, lower-case letters and digits: an id that no other run has.
std::string tracked_id(const LogStart& start, int64_t unix_ms, int characters, int base);

}  // namespace tutti
