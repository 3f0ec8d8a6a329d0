#pragma once

#include <string>
#include <variant>

#include "commands/batch_find.h"
#include "commands/check.h"
#include "commands/export.h"
#include "commands/generate.h"
#include "commands/import.h"
#include "commands/inspect.h"
#include "commands/lr_find.h"
#include "commands/predict.h"
#include "commands/sample_images.h"
#include "commands/tokenize.h"
#include "recipe/toml_reader.h"
#include "sim/replay/replay.h"
#include "sim/simulate/simulate.h"

namespace tutti {

struct TrainOptions {
  RecipeFile recipe = {};
  std::string run_dir;  // "" = runs/<run_name>
  std::string resume;   // "auto" or a path; "" = as the recipe says
  int local_ranks = 0;  // ranks in this one process; 0 = mpirun's
  bool json = false;    // print only the result, as JSON
};

// An error of this rank's command line, for the other ranks.
struct Refusal {
  std::string why;
};

// A command and its options.
using CommandOptions =
    std::variant<TrainOptions, EvalOptions, PredictOptions, CheckOptions, CostOptions, InspectOptions,
                 ExportOptions, ImportOptions, ContinueOptions, SampleImagesOptions, TokenizeOptions,
                 LrFindOptions, BatchFindOptions, ReplayOptions, SimulateOptions, Refusal>;

}  // namespace tutti

// The interface of libtutti.so, which the executable opens for commands that need libtorch. Both are of one
// build. Runs the command on this rank and returns the exit code: 0; 2 if the ranks cannot start (rank 0
// prints the error); 3 if the last checkpoint could not be written. Throws UserError and other exceptions,
// which `main` reports.
extern "C" int tutti_run(const tutti::CommandOptions& command);
