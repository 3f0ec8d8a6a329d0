#pragma once

#include <string>

#include "runtime/setting.h"

namespace tutti {

// What `tutti train` was told besides the recipe.
struct LaunchOptions {
  std::string run_dir;  // "" = runs/<run_name>
  std::string resume;   // "" = as the recipe says
};

// Trains in this process as the one rank that it is: under mpirun one of several, else alone. Returns the
// exit code: 0, or 3 when the last checkpoint could not be written. Throws UserError where all ranks agree
// that they cannot start; any other failure is told on standard error and ends the process with 1 (2 for a
// user's error).
int train(const Setting& recipe, const LaunchOptions& options);

}  // namespace tutti
