#pragma once

#include <string>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// Writes a page about the runs in these folders, side by side, to `out`: one HTML file without references to
// other files. Returns a summary line. Throws UserError if a folder is no run's, a run has done no step, or
// `out` cannot be written.
std::string write_report(Disk& disk, const std::vector<std::string>& runs, const std::string& out);

// The parts of the page, which cmake/embed.cmake makes of the files of these names.
extern const char kPageHtml[];
extern const char kPageCss[];
extern const char kChartsJs[];
extern const char kTablesJs[];
extern const char kPageJs[];

}  // namespace tutti
