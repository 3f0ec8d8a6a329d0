#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "analysis/run_status.h"
#include "cli/sweep/sweep_plan.h"
#include "runtime/process/child_pool.h"

namespace tutti {

// Trains trials of a sweep as child processes, each in its folder below the sweep's.
class TrialRunner {
 public:
  TrialRunner(const SweepPlan& plan, std::string folder, int jobs);

  // Trains these trials to the end, or to `stop_at`, and continues trials that were interrupted. Trials that
  // are there already are left alone. False if a signal asked to stop: the trials under way have then written
  // checkpoints.
  bool run(const std::vector<Trial>& trials, const std::string& stop_at);

  // The status by the trial's folder; a trial that could not begin has failed with its error.
  RunStatus status(const Trial& trial) const;
  std::string run_dir(const Trial& trial) const { return folder_ + '/' + trial.name; }
  bool has_begun(const Trial& trial) const {
    return failures_.contains(trial.name) || PosixDisk().exists(run_dir(trial));
  }

 private:
  bool is_done(const Trial& trial, const std::string& stop_at) const;
  bool is_under_way_elsewhere(const Trial& trial);
  void start(std::size_t index, const Trial& trial, const std::string& stop_at);
  void finish(const Trial& trial, int status, const std::string& stop_at);
  void stop_all();
  std::string log_path(const Trial& trial) const { return folder_ + "/log/" + trial.name + ".log"; }

  const SweepPlan& plan_;
  std::string folder_;
  int jobs_;
  ChildPool pool_;
  std::vector<Trial> under_way_;                 // trials of the pool
  std::map<std::string, std::string> failures_;  // of trials that left no result, by name
  std::set<std::string> awaited_;                // names of trials of an earlier process
};

// The words of `tutti train` for the trial, without its folder, for a shell.
std::string command_of(const SweepPlan& plan, const Trial& trial);

}  // namespace tutti
