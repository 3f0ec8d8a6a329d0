#pragma once

#include <cstdint>
#include <string>

#include "models/metric.h"
#include "recipe/setting.h"

namespace tutti {

// Metrics' num_classes and num_labels as the data have them; 0 = unknown.
struct DataCounts {
  int64_t classes = 0, labels = 0;
};

// Makes a metric of the catalog from a name, with default keys, or from a table such as {kind =
// "MulticlassAccuracy", top_k = 2}; the table's `name` (of a plugin's: `measured_name`) becomes
// measured_name(). `composer`: default of batch_means; `counts`: the numbers of classes and labels where the
// table has none. Throws UserError for unknown names and keys, suggesting the nearest, and for missing keys.
MetricPtr make_metric(const Setting& setting, bool composer = false, const DataCounts& counts = {});
MetricPtr make_metric(const std::string& name, bool composer = false, const DataCounts& counts = {});

}  // namespace tutti
