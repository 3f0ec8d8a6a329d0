#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "job/job.h"
#include "recipe/setting.h"

namespace tutti {

struct LocalRunOptions {
  int ranks = 2;
  uint64_t schedule_seed = 0;  // of the interleaving
  uint64_t fresh_seed = 0;     // where the recipe names none
  std::string run_dir;
  std::string resume;
  // A user waits for the run: time is real, SIGTERM and SIGINT stop it, it prints, logs and keeps a journal.
  // Else time is made up.
  bool live = false;
  bool quiet = false;  // live, but it prints and logs nothing
  // What a program changes of the job that the recipe describes: a model, data or listeners of its own.
  std::function<void(Job& job)> prepare = {};
};

struct LocalRunResult {
  int exit_code = 0;
  uint64_t delivery_digest = 0;
};

// Trains with several ranks in this one process, under the simulator's scheduler: the same actors, the same
// bits as under mpirun with so many ranks. Throws UserError, OperatingError or Aborted.
LocalRunResult train_in_one_process(const Setting& recipe, const LocalRunOptions& options);

}  // namespace tutti
