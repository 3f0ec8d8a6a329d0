#pragma once

#include <string>
#include <vector>

#include "analysis/report/reported_run.h"

namespace tutti {

// The data of a report's page as JSON, for page.js; without "<", so as to stand in a script element. Curves
// are thinned out: a page of any runs has at most some megabytes.
std::string report_json(const std::vector<ReportedRun>& runs);

}  // namespace tutti
