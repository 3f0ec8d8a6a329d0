#pragma once

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "commands/entry.h"

namespace tutti {

// The arguments of a subcommand that goes to libtutti.so; CLI11 writes into it.
struct LibraryArguments {
  std::string path, run_dir, resume, checkpoint, seeds, faults, out;
  std::string evaluator = "eval";
  std::vector<std::string> overrides;
  int local_ranks = 0;
  int ranks = 0;
  int64_t until = 0, break_at = 0, start = 0;
  int rank = -1;
  int jobs = 0;
  int share_of = 0;
  bool once = false;
  bool scan_data = false;
  bool digest = false;
};
using LibraryArgumentsPtr = std::shared_ptr<LibraryArguments>;

// Adds RECIPE and --set.
void add_recipe_options(CLI::App& command, LibraryArguments& arguments);

// Adds --start: which start of a recorded run; 0 where none is given, for the newest.
void add_start_option(CLI::App& command, const std::string& name, int64_t& start);

// Hands the command to libtutti.so. Returns the exit code.
int run_request(const std::string& command, const LibraryArguments& arguments);

// The same once the recipe has been read and resolved here: what is wrong with it shows before libtorch is
// loaded.
int run_recipe_request(const std::string& command, const LibraryArguments& arguments);

}  // namespace tutti
