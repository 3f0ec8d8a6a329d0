#pragma once

#include <functional>
#include <memory>
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

// This process as one rank of runs, one run after the other: under mpirun one of several ranks, else alone.
// The first run starts MPI; the destructor ends MPI, together with all other ranks.
class Launcher {
 public:
  Launcher();
  ~Launcher();

  // Trains. Returns the exit code: 0, 3 when the last checkpoint could not be written, or 2 when some rank
  // cannot start (its recipe, its data, its command line); rank 0 prints that error once, whichever rank has
  // it. Any other failure is printed by the rank that has it and ends the process with 1.
  //
  // A logger that hangs for ever is named in a warning once everything else has ended, and its thread is
  // abandoned: it cannot be ended, and what it uses lives on. It might see the process's static objects go,
  // so the process ends here if `ends_process`, with the exit code that would have been returned.
  //
  // Every rank that mpirun started must call this, also one that already knows that it cannot start: the
  // others wait for it.
  int train(const RecipeSource& recipe, const LaunchOptions& options);

  // Folder of the checkpoints of the run that was trained last; "" = none.
  const std::string& checkpoints() const { return checkpoints_; }

 private:
  struct Mpi;
  std::unique_ptr<Mpi> mpi_;  // null: no run was under MPI
  std::string checkpoints_;
};

}  // namespace tutti
