#pragma once

#include <CLI/App.hpp>
#include <string>

#include "recipe/toml_reader.h"

namespace tutti {

// Arguments that name a run: its folder, or a recipe, whose run is in runs/. Without an argument the newest
// run in runs/ is meant, which a line on standard error names. A checkpoint is named by "best", "latest", its
// name or the beginning of its name, or a path. All functions throw UserError.

// Adds RUN, which may be left out.
void add_run_argument(CLI::App& command, std::string& run);

// Adds --checkpoint.
void add_checkpoint_option(CLI::App& command, std::string& checkpoint);

// The run's folder; of a training in stages, of its newest stage. Other paths are returned as they are.
std::string run_folder(const std::string& run);
// The same, but the folder of all stages.
std::string folder_of_all_stages(const std::string& run);

// The folder of a checkpoint, or of a run or checkpoints of which the newest good one counts. `path` may also
// be a checkpoint's folder, or one of checkpoints.
std::string checkpoint_folder(const std::string& path, const std::string& checkpoint);

// For RUN|RECIPE: replaces the path of a run by the path of the run's recipe, and the name of a checkpoint by
// its folder. With a recipe, "" and paths of checkpoints stay.
void complete(RecipeFile& recipe, std::string& checkpoint);
// The same for commands without a checkpoint.
void complete(RecipeFile& recipe);

}  // namespace tutti
