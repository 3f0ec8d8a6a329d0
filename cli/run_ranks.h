#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace tutti {

// `tutti run`: starts ranks by mpirun, and returns its exit code. `words` follow `run`: mpirun's options,
// then a command of tutti with its arguments, or `--` and any program, which this process then becomes. Ranks
// of tutti get the time that they need to stop after a Ctrl-C. Throws UserError.
int run_ranks(CLI::App& app, const std::vector<std::string>& words);

}  // namespace tutti
