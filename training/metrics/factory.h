#pragma once

#include "models/metric.h"
#include "recipe/setting.h"

namespace tutti {

// Makes a metric of the catalog from a name, with default keys, or from a table such as {kind =
// "MulticlassAccuracy", top_k = 2}; the table's `name` (of a plugin's: `measured_name`) becomes
// measured_name(). `composer`: default of batch_means. Throws UserError for unknown names and keys,
// suggesting the nearest, and for missing keys.
MetricPtr make_metric(const Setting& setting, bool composer = false);
MetricPtr make_metric(const std::string& name, bool composer = false);

}  // namespace tutti
