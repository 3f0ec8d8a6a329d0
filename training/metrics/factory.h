#pragma once

#include "models/metric.h"

namespace tutti {

// A metric by its name in the metrics catalog, empty; throws UserError for any other name, suggesting the
// nearest.
MetricPtr make_metric(const std::string& name);

}  // namespace tutti
