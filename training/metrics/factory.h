#pragma once

#include "models/metric.h"
#include "recipe/setting.h"

namespace tutti {

// A metric of the metrics catalog, empty: a name with the defaults of its keys, or a table such as
// {kind = "MulticlassAccuracy", top_k = 2}. Throws UserError for any other name or key, suggesting the
// nearest, and where a key is missing. A table's `name` is the metric's measured_name(). `composer`: what its
// batch_means is where it does not say.
MetricPtr make_metric(const Setting& setting, bool composer = false);
MetricPtr make_metric(const std::string& name, bool composer = false);

}  // namespace tutti
