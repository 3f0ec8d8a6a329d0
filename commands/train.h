#pragma once

#include <functional>
#include <memory>
#include <string>

#include "commands/start_agreement.h"
#include "job/job.h"

namespace tutti {

// Runs this process as a rank of one run after the other: under mpirun one of several ranks, else the only
// rank. The first run starts MPI; the destructor, which is collective, ends MPI.
class Launcher {
 public:
  Launcher();
  ~Launcher();

  // Trains. Returns the exit code: 0; 3 if the last checkpoint could not be written; 2 if a rank cannot start
  // because of its recipe, data or command line, an error that rank 0 prints. Any other failure is printed by
  // its rank, and ends the process with 1.
  //
  // A logger that hangs is named in a warning after all other actors have ended, and its thread is abandoned
  // with all objects that the thread uses. If `ends_process`, the process then ends here with the exit code,
  // before static objects are destroyed.
  //
  // With LaunchOptions::local_ranks all ranks are in this process, and errors are thrown: UserError,
  // OperatingError or Aborted.
  //
  // Collective: ranks that cannot start must call too, since the other ranks wait.
  int train(const RecipeSource& recipe, const LaunchOptions& options);

  // Copies the newest checkpoint of the run that was trained last to `folder`, which must not exist.
  // Collective: rank 0 copies, and all ranks throw its error: UserError if there is no checkpoint,
  // OperatingError if the copy fails.
  void save_checkpoint(const std::string& folder) const;
  // True if the run that was trained last was stopped on request.
  bool stopped() const { return stopped_; }

 private:
  int train_in_this_process(const RecipeSource& recipe, const LaunchOptions& options);
  std::string newest_checkpoint() const;  // its folder, "" = none

  struct Mpi;
  std::unique_ptr<Mpi> mpi_;  // null until a run under MPI
  std::string checkpoints_;   // folder, "" = no run was trained
  CheckpointSet set_;
  bool stopped_ = false;
  bool leaves_threads_ = false;  // of loggers that hang, in any run
};

}  // namespace tutti
