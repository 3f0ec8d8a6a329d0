#pragma once

#include <functional>
#include <string>

#include "job/job.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {

// The job of a command that looks at a run without being one: no folders are made.
Job single_process_job(const Setting& recipe, int ranks);

// A job's model as the recipe's algorithms make it, with nobody else who listens, for commands that run it.
// The job must outlive it.
struct LoadedModel {
  // At its initial weights; INIT has been.
  explicit LoadedModel(const Job& job);

  // Takes the weights, the time, and what the algorithms know, of the checkpoint at `named`, which is a
  // checkpoint's or a run's folder; of "", of the run's newest good one, and where there is none nothing.
  // Says which, "weights: runs/one/checkpoints/ep20-ba300". Throws UserError, blaming --checkpoint.
  std::string load(const std::string& named);

  const Job& job;
  State state;
  Logger logger;
  Engine engine;
};

// Runs a command; an error that is not the user's by its text is one of the recipe's file.
std::string naming_recipe(const Setting& recipe, const std::function<std::string()>& command);

// What is passed over on the way to a good checkpoint, on standard error.
void tell_passed_over(const std::string& what);

}  // namespace tutti
