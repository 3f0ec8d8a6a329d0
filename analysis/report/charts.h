#pragma once

#include <string>
#include <vector>

#include "analysis/metrics_table.h"

namespace tutti {

// A chart of a report: one or more columns of metrics.jsonl, of all runs.
struct Chart {
  struct Line {
    std::string column;
    std::string label;  // of several columns in a chart: "train", "eval"
  };
  std::string group;  // the heading above: "Loss", "Other"
  std::string title;
  std::string unit;  // of the values; "" = none
  std::vector<Line> lines;
  bool stairs = false;          // a value holds until the next
  bool less_is_better = false;  // a loss
  bool monitor = false;         // no column of every run: the page shows it last
};

// The charts that show every column of the runs: known columns in their groups, metrics of the same name
// together. All other columns are monitors: many columns with one prefix form a group of that name
// ("l2_norm/grad"), the rest are in "Other". Columns that are no curves are left out.
std::vector<Chart> charts_of(const std::vector<const MetricsTable*>& runs);

}  // namespace tutti
