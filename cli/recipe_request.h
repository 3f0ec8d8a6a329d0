#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands/entry.h"

namespace tutti {

// The arguments of a subcommand that runs in libtutti.so, filled by CLI11.
struct LibraryArguments {
  std::string path, run_dir, resume, checkpoint, seeds, faults, out;
  std::string evaluator = "eval";
  std::vector<std::string> overrides;
  int local_ranks = 0;
  bool json = false;
  int ranks = 0;
  int64_t until = 0, break_at = 0, attempt = 0;
  int rank = -1;
  int jobs = 0;
  int share_of = 0;
  bool once = false;
  int steps = 2;
  bool scan_data = false;
  bool all = false;
  bool digest = false;
};
using LibraryArgumentsPtr = std::shared_ptr<LibraryArguments>;

// Adds RECIPE and --set.
void add_recipe_options(CLI::App& command, LibraryArguments& arguments);

// Adds --attempt: the number of a recorded attempt, from 1; 0 (default) = the newest. `suffix` ends the
// option's name. The hidden old name, --start, is accepted.
void add_attempt_option(CLI::App& command, int64_t& attempt, const std::string& suffix = "");

// Opens libtutti.so beside the executable or in ../lib and runs the command there; returns the exit code.
// Throws OperatingError if there is no such library.
int run_request(const std::string& command, const LibraryArguments& arguments);

// Reads and resolves the recipe first, so that errors show before libtorch is loaded; then run_request.
int run_recipe_request(const std::string& command, const LibraryArguments& arguments);

}  // namespace tutti
