#pragma once

#include <string>
#include <utility>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// "metrics/eval/MulticlassAccuracy" -> 0.97
using LoggedMetrics = std::vector<std::pair<std::string, double>>;

// The one of the logged names `measured` that `metric` means: "metrics/eval/MulticlassAccuracy", or the same
// without its first parts. Throws UserError unless it means one.
std::string logged_name(const Setting& metric, const std::vector<std::string>& measured);

}  // namespace tutti
