#pragma once

#include <cstdint>
#include <string>

#include "recipe/setting.h"
#include "recipe/toml_reader.h"

namespace tutti {

// Time and memory of the last tried step.
struct TriedStep {
  int64_t steps = 0;       // tried; fewer than asked for if the run has fewer
  double loss = 0;         // mean over all ranks
  double ms = 0;           // of a rank; ranks computed in turn
  double memory_mb = 0;    // at the peak, of the largest rank
  int64_t grad_accum = 1;  // microbatches; if automatic: as many as memory allowed
};

// Trains `steps` steps of a new model, with all ranks in this process, in a temporary folder: without
// loggers, callbacks, evaluations and a checkpoint to start from. Passes on exceptions of the training, for
// example if shapes of a plugin's model do not fit.
TriedStep try_steps(Setting recipe, int ranks, int steps);

struct CheckOptions {
  RecipeFile recipe = {};
  int ranks = 1;
  bool scan_data = false;  // reads every sample, too
  bool all = false;        // also shows the resolved recipe
  int steps = 0;           // to try (try_steps)
};

// The output of `tutti check`: "ok", with model, batches, and the cost of a step, if steps are tried. Finds
// errors before a training: opens the data, builds the model, reads initial weights and the checkpoint to
// resume from. Throws UserError.
std::string check_text(const Setting& recipe, const CheckOptions& options = {});

struct EvalOptions {
  RecipeFile recipe = {};
  std::string checkpoint;  // a checkpoint's or a run's folder; "" = the run's newest
};

// The output of `tutti eval`: the metrics of all evaluators with the weights of a checkpoint ("" = the newest
// of the run folder, or initial weights if none). On one rank. Throws UserError.
std::string eval_text(const Setting& recipe, const std::string& checkpoint);

}  // namespace tutti
