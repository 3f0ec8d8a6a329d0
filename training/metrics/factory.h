#pragma once

#include "models/metric.h"
#include "runtime/setting.h"

namespace tutti {

// A metric of the metrics catalog, empty: a name with the defaults of its keys, or a table such as
// {kind = "MulticlassAccuracy", top_k = 2}. Throws UserError for any other name or key, suggesting the
// nearest, and where a key is missing.
MetricPtr make_metric(const Setting& setting);
MetricPtr make_metric(const std::string& name);

}  // namespace tutti
