#pragma once

#include <string>
#include <vector>

#include "recipe/setting.h"
#include "runtime/disk.h"

namespace tutti {

// True for a folder of a run, with a recipe, and a lock, metrics, checkpoints, ... Throws UserError if the
// folder cannot be read.
bool is_run_folder(const std::string& folder);

// The plan of `tutti sweep`, in the folder of its runs.
inline constexpr const char* kSweepFile = "sweep.toml";
bool is_sweep_folder(const std::string& folder);
// Throws UserError for the folder of a sweep, which no run may use.
void require_no_sweep(const std::string& folder);
// The runs of the trials in a sweep's folder, by name.
std::vector<std::string> trial_runs(const std::string& folder);

// An empty file in the folder of a run of `tutti lr-find`, whose weights are of no use.
inline constexpr const char* kRangeTestFile = "lr-find";
bool is_range_test(const std::string& folder);

// RUN/stage-1, RUN/stage-2, ...: the runs in the folder of a training in stages.
inline constexpr const char* kStageFolder = "stage-";
// These runs, in the order of the stages; none for other folders.
std::vector<std::string> stage_runs(const std::string& folder);
// The run of the newest stage, or the folder itself if it is of no such training.
std::string newest_stage(const std::string& folder);

// Throws UserError unless the folder exists and is a run's.
void require_run_folder(const std::string& run_dir);

// "" if the recipe has no such text.
std::string text_at(const Setting& recipe, const char* section, const char* key);

// The folder of the run's checkpoints, by its resolved recipe.
std::string checkpoints_folder(const std::string& run_dir, const Setting& recipe);

enum class RunCondition {
  kRunning,
  kEnded,    // well; why is in the result
  kFailed,   // by an error, which is in the result
  kKilled,   // ended without a result
  kDamaged,  // its recipe cannot be read; the rest is unknown
};

const char* name(RunCondition condition);  // "running"

// The end of a run, and its reason.
struct RunEnding {
  RunCondition condition = RunCondition::kKilled;
  std::string reason = {};    // why the run ended; the host of a run under way; the damaged part
  std::string result = "{}";  // result.json
  std::string ended = {};     // of the result: "max_duration", "stop_at", ...; "" without one
};

// By the folder's lock, which a run under way holds, and its result. Throws UserError if lock or result
// cannot be read.
RunEnding ending_of(const Disk& disk, const std::string& run_dir);

}  // namespace tutti
