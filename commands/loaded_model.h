#pragma once

#include <functional>
#include <string>

#include "job/job.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {

// The job of a command that does not train: no folders are created.
Job single_process_job(const Setting& recipe, int ranks);

// A job's model for commands that do not train, with the recipe's algorithms as the only listeners.
struct LoadedModel {
  // Builds the model with initial weights; runs INIT. The job must outlive the model.
  explicit LoadedModel(const Job& job);

  // Restores the weights, the time and the state of algorithms from a checkpoint. `path`: a checkpoint's or a
  // run's folder; "" = the newest good checkpoint of the run, if any. Returns the source, as in "weights:
  // runs/one/checkpoints/ep20-ba300". Throws UserError with the key --checkpoint.
  std::string load(const std::string& path);

  const Job& job;
  State state;
  Logger logger;
  Engine engine;
};

// Runs a command. Other exceptions become UserErrors that name the recipe's file.
std::string blame_recipe(const Setting& recipe, const std::function<std::string()>& command);

// Prints an ignored, damaged checkpoint to standard error.
void warn_ignored(const std::string& what);

}  // namespace tutti
