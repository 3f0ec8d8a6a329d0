#pragma once

#include <functional>
#include <string>

#include "job/job.h"
#include "recipe/setting.h"

namespace tutti {

// What `tutti train` was told besides the recipe.
struct LaunchOptions {
  std::string run_dir;  // "" = runs/<run_name>
  std::string resume;   // "" = as the recipe says
  UserComponents components = {};
  bool ends_process = true;  // where a logger hangs
};

// Gives the resolved recipe, or throws UserError.
using RecipeSource = std::function<Setting()>;

// Trains in this process as the one rank that it is: under mpirun one of several, else alone. Returns the
// exit code: 0, 3 when the last checkpoint could not be written, or 2 when some rank cannot start (its
// recipe, its data, its command line), which rank 0 tells on standard error, once, whoever's error it is. Any
// other failure is told by each rank and ends the process with 1.
//
// A logger that hangs for ever is named in a warning once everything else has ended, and its thread is left
// behind: it cannot be ended, and what it uses lives on. It might see the process's static objects go, so the
// process ends here where `ends_process`, with the exit code that would have been returned.
//
// Every rank that mpirun started must come here, one that already knows that it cannot start too: the others
// wait for it.
int train(const RecipeSource& recipe, const LaunchOptions& options);

}  // namespace tutti
