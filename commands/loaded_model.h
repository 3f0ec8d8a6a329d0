#pragma once

#include <functional>
#include <string>

#include "io/checkpoint/checkpoint.h"
#include "job/checkpoint_options.h"
#include "job/job.h"
#include "job/make_job.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {

// The job of a command or program that does not train: no folders are created. `recipe`: as read_recipe gives
// it, or resolved. `fitted`, `resume`: as of JobOptions.
Job single_process_job(const Setting& recipe, int ranks, const std::string& fitted = "",
                       const std::string& resume = "");

// A job's model for commands that do not train, on the job's device. Its only listeners are the recipe's
// algorithms and the algorithms that the checkpoint's weights need. The job must outlive the model.
struct LoadedModel {
  // Finds the checkpoint and builds the model, with initial weights; runs INIT. `path`: a checkpoint's or a
  // run's folder; "" or "auto" = the newest good checkpoint of the run, if any. Throws UserError with the key
  // --checkpoint.
  LoadedModel(const Job& job, const std::string& path);
  // For a checkpoint of which `options` allow a part; without folder: none. `key` names it in errors.
  LoadedModel(const Job& job, Checkpoint checkpoint, const LoadOptions& options, Setting key);

  LoadedModel(Job&&, const std::string&) = delete;

  // Restores the weights, the time and the state of algorithms from the checkpoint. Returns the source, as in
  // "weights: runs/one/checkpoints/ep20-ba300". Throws UserError with the key.
  std::string load();

  const Job& job;
  const Setting key;
  const Checkpoint checkpoint;
  State state;
  Logger logger;
  Engine engine;
};

struct SavedRun {
  Checkpoint checkpoint;
  Setting recipe;  // resolved
};

// `path`: a checkpoint's or a run's folder. Prints ignored checkpoints. Throws OperatingError or UserError.
SavedRun find_saved_run(const std::string& path);

// Runs a command. Other exceptions become UserErrors that name the recipe's file.
std::string blame_recipe(const Setting& recipe, const std::function<std::string()>& command);

// Prints an ignored, damaged checkpoint to standard error.
void warn_ignored(const std::string& what);

}  // namespace tutti
