#pragma once

#include <string>

#include "recipe/toml_reader.h"

namespace tutti {

struct CheckOptions {
  RecipeFile recipe = {};
  int ranks = 1;
  bool scan_data = false;  // reads every sample, too
  bool all = false;        // also shows the resolved recipe
  int steps = 0;           // to try (commands/dry_run.h)
};

// The output of `tutti check`: "ok", with model, batches, and what a step takes, if some are tried. Finds
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
