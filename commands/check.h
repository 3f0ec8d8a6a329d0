#pragma once

#include <cmath>
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
  double wait_ms = 0;      // of these, for data
  double memory_mb = 0;    // at the peak, of the largest rank
  int64_t grad_accum = 1;  // microbatches; if automatic: as many as memory allowed
};

struct TryOptions {
  int ranks = 1;
  int steps = 1;
  double seconds = INFINITY;       // no further step begins when so many have passed
  bool copies_checkpoints = true;  // false: without the memory and the time of a checkpoint
};

// Trains some steps of a new model, with all ranks in this process, in a temporary folder: without loggers,
// callbacks, evaluations and a checkpoint to start from. Passes on exceptions of the training, for example if
// shapes of a plugin's model do not fit.
TriedStep try_steps(Setting recipe, const TryOptions& tried);

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

// What training costs on this machine, on one rank, by steps that were tried for a second or two.
struct RecipeCost {
  double epoch_s = 0;   // or the whole run, if shorter
  double batch_ms = 0;  // computing on a batch
  double load_ms = 0;   // reading a batch and transforming its samples, on one thread
  std::string text;     // "An epoch of 28 steps takes about 1:58 here, the training of 20ep 39:20."
};

RecipeCost cost_of(const Setting& recipe);

// A command that prints nothing, for `tutti init`.
struct CostOptions {
  RecipeFile recipe = {};
  RecipeCost* cost = nullptr;
};

struct EvalOptions {
  RecipeFile recipe = {};
  std::string checkpoint;  // a checkpoint's or a run's folder; "" = the run's newest
};

// The output of `tutti eval`: the metrics of all evaluators with the weights of a checkpoint ("" = the newest
// of the run folder, or initial weights if none). On one rank. Throws UserError.
std::string eval_text(const Setting& recipe, const std::string& checkpoint);

}  // namespace tutti
