#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/metrics_table.h"

namespace tutti {

// Values of neighbouring steps, drawn as one point.
struct Bucket {
  int64_t first = 0, last = 0;  // steps
  double mean = 0, low = 0, high = 0;
};

// A column small enough to be drawn.
struct Series {
  std::vector<Bucket> buckets;                         // finite values, in the order of steps
  std::vector<std::pair<int64_t, double>> not_finite;  // steps and values, the first of them
  int64_t not_finite_count = 0;                        // of all
};

// At most `most` buckets of as many steps each; a column of at most `most` values keeps every one of them.
Series thin(const MetricsColumn& column, int64_t most);

}  // namespace tutti
