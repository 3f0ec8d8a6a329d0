#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// A column of metrics.jsonl: its values in the order of the steps, which may have gaps. Values may be
// infinite or NaN.
struct MetricsColumn {
  std::string name;
  std::vector<int64_t> steps;
  std::vector<double> values;
};

// The numbers of a run's metrics.jsonl.
struct MetricsTable {
  std::vector<MetricsColumn> columns;  // in the order of their first line; without "step"
  int64_t last_step = 0;
  int64_t unreadable_lines = 0;  // beside a torn last one

  const MetricsColumn* find(std::string_view name) const;
  // The last value of a column, or `otherwise`.
  double last(std::string_view name, double otherwise) const;
};

// Seconds of training at the end of each step, and in all.
MetricsColumn training_clock(const MetricsTable& metrics);
double training_seconds(const MetricsTable& metrics);

// Of the finite values; NaN without any, and for null.
double median(const MetricsColumn* column);

// Reads the file, which may still grow: a torn last line does not count. Empty if there is no such file.
MetricsTable read_metrics(const Disk& disk, const std::string& run_dir);

}  // namespace tutti
