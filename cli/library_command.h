#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <string>

#include "commands/entry.h"

namespace tutti {

// Adds RECIPE, and returns that option, and --set. The second function adds --set alone.
CLI::Option* add_recipe_options(CLI::App& command, RecipeFile& recipe);
void add_set_option(CLI::App& command, RecipeFile& recipe);

// Adds --attempt: the number of a recorded attempt, from 1; 0 (default) = the newest. `suffix` ends the
// option's name. The hidden old name, --start, is accepted.
void add_attempt_option(CLI::App& command, int64_t& attempt, const std::string& suffix = "");

// Opens libtutti.so beside the executable or in ../lib and runs the command there; returns the exit code.
// Throws OperatingError if there is no such library.
int run_in_library(const CommandOptions& options);

// Reads and resolves the recipe first, so that errors show before libtorch is loaded.
void require_valid(const RecipeFile& recipe);

}  // namespace tutti
