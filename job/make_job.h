#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "job/job.h"
#include "recipe/setting.h"

namespace tutti {

// The command line's part of a job.
struct JobOptions {
  int world = 1;
  std::string run_dir;      // "" = runs/<run_name>
  std::string resume;       // overrides the recipe
  uint64_t fresh_seed = 0;  // if the recipe has no seed; equal on all ranks
  std::string nonce;
  bool makes_folders = true;   // of the run and the checkpoints
  bool cpu_stands_in = false;  // for the device with which the job was recorded
  UserComponents components = {};
  // Dataset::fitted of the data on which a checkpoint was trained, for its evaluations; "": the recipe's.
  std::string fitted = {};

  // The rank of this process; -1: all ranks are in this process.
  int rank = -1;
  // An all-gather of texts, by rank; empty if all ranks are in this process.
  std::function<std::vector<std::string>(const std::string& mine)> all_gather = {};
  std::vector<std::string> hosts = {};  // by rank; missing ones are this machine
};

// --run-dir, or runs/<run_name> if `run_dir` is "".
std::string run_folder(const std::string& run_dir, const std::string& run_name);

// Opens the data; checks that batches fit the ranks, that the model fits the data, and that evaluation data
// has samples of the same kind; creates the run's folders. Throws UserError.
Job make_job(Setting recipe, const JobOptions& options);

// Lines on slow data and keys without effect, for the user.
std::vector<std::string> job_advice(const Job& job);

}  // namespace tutti
