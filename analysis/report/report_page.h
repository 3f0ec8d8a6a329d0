#pragma once

#include <string>
#include <vector>

#include "runtime/disk.h"

namespace tutti {

// A run's folder, and whether the run is under way.
struct RunToReport {
  std::string run_dir;
  bool under_way = false;
};

// Writes a page about the runs, side by side, to `out`: one HTML file without references to others. Returns a
// summary line. Throws UserError if a folder is no run's, a run has done no step, or `out` cannot be written.
std::string write_report(Disk& disk, const std::vector<RunToReport>& runs, const std::string& out);

// The parts of the page, which cmake/embed.cmake makes of page.html, page.css, charts.js and page.js.
extern const char kPageHtml[];
extern const char kPageCss[];
extern const char kChartsJs[];
extern const char kPageJs[];

}  // namespace tutti
