#pragma once

#include <map>
#include <string>
#include <vector>

#include "analysis/metrics_table.h"
#include "analysis/report/log_lines.h"
#include "analysis/report/logged_items.h"
#include "analysis/report/recorded_start.h"
#include "analysis/run_folder.h"
#include "io/checkpoint/checkpoint_summary.h"
#include "recipe/setting.h"
#include "runtime/disk.h"

namespace tutti {

// All that a report says of one run.
struct ReportedRun {
  std::string path;  // as the user gave it
  std::string name;  // the folder's
  RunEnding ending;
  Setting recipe;  // resolved
  MetricsTable metrics;
  std::vector<StartSummary> starts;  // with journals, in the order of time
  std::vector<CheckpointSummary> checkpoints;
  LogFaults faults;
  LoggedItems logged;

  // The times of the newest fresh attempt and of those that resumed it, by rank.
  std::vector<WorkTimes> times() const;
  int world() const;  // of the newest attempt; 0 if it is unknown
};

// Reads a run's folder, and of images that it logged as many bytes. Throws UserError if there is no such
// folder, it is no run's, or no step is done.
ReportedRun read_run(const Disk& disk, const std::string& run_dir, uint64_t image_bytes);

// The values of a resolved recipe by dotted key, as TOML.
std::map<std::string, std::string> recipe_values(const Setting& recipe);

}  // namespace tutti
