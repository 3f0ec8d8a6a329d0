#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/run_folder.h"
#include "io/checkpoint/checkpoint_summary.h"
#include "io/formats/run_metrics.h"
#include "recipe/setting.h"

namespace tutti {

// A run, under way or not, as of its folder.
struct RunStatus {
  std::string run_dir;
  RunEnding ending;
  Setting recipe;            // resolved; none if damaged
  std::string max_duration;  // of the recipe: "20ep"
  RunMetrics metrics;
  int64_t changed_unix_s = 0;  // when metrics.jsonl was last written; 0 = never
  std::string checkpoints_folder;
  std::vector<CheckpointSummary> checkpoints;  // by step
  std::string uploads = "null";  // uploads.json of a run with a remote save_folder
  uint64_t journal_bytes = 0;
  uint64_t bytes = 0;  // of all files: run folder and checkpoints

  std::string json() const;  // on one line
};

// Throws UserError if the folder does not exist or is no run.
RunStatus status_of(const std::string& run_dir);

// Lines for people. `now_unix_s`: for "3 minutes ago".
std::string status_text(const RunStatus& status, int64_t now_unix_s);

// "3 minutes ago"; with what is wrong with a run of which only the result cannot be read.
std::string last_step_text(const RunStatus& run, int64_t now_unix_s);

std::string size_text(uint64_t bytes);  // "2.2 kB"

// All runs directly below a folder, by name, also unreadable runs (RunCondition::kDamaged); a run's folder
// is the only one.
std::vector<RunStatus> runs_below(const std::string& folder);

}  // namespace tutti
