#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "job/job.h"
#include "recipe/setting.h"

namespace tutti {

struct LocalRunOptions {
  int ranks = 2;
  uint64_t schedule_seed = 0;  // of the interleaving of actors
  uint64_t fresh_seed = 0;     // if the recipe has no seed
  std::string run_dir;
  std::string resume;
  // Started by a user: real time, SIGTERM and SIGINT stop the run, with output, log and journal. Else time is
  // simulated.
  bool live = false;
  bool quiet = false;  // live, but without output and log
  bool json = false;   // live, and printing only the result, as JSON
  UserComponents components = {};
  // Changes the job of the recipe.
  std::function<void(Job& job)> prepare = {};
};

struct LocalRunResult {
  int exit_code = 0;
  bool stopped = false;  // on request
  uint64_t delivery_digest = 0;
};

// Trains with several ranks in this process, under the simulator's scheduler. Same actors and same bits as
// under mpirun with as many ranks. Throws UserError, OperatingError or Aborted.
LocalRunResult train_in_one_process(const Setting& recipe, const LocalRunOptions& options);

}  // namespace tutti
