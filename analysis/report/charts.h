#pragma once

#include <cstdint>
#include <string>
#include <utility>
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
  bool monitor = false;         // no column of every run: last on the page
};

// The charts that show every column of the runs: known columns in their groups, metrics of the same name
// together. All other columns are monitors: many columns with one prefix form a group of that name
// ("l2_norm/grad"), the rest are in "Other". Columns that are no curves, as the cells of matrices, are left
// out.
std::vector<Chart> charts_of(const std::vector<const MetricsTable*>& runs);

// Values of neighbouring steps, drawn as one point.
struct ChartPoint {
  int64_t first = 0, last = 0;  // steps
  double mean = 0, low = 0, high = 0;
};

// A column small enough to be drawn.
struct Series {
  std::vector<ChartPoint> buckets;                     // finite values, in the order of steps
  std::vector<std::pair<int64_t, double>> not_finite;  // steps and values, the first of them
  int64_t not_finite_count = 0;                        // of all
};

// At most `most` buckets of as many steps each; a column of at most `most` values keeps every value.
Series thin(const MetricsColumn& column, int64_t most);

}  // namespace tutti
