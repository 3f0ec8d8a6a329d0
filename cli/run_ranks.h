#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

namespace tutti {

// `tutti run`: becomes mpirun, which starts ranks. `words` follow `run`: mpirun's options, then a command of
// tutti with its arguments, or `--` and any program. Throws UserError.
[[noreturn]] void run_ranks(CLI::App& app, std::vector<std::string> words);

}  // namespace tutti
