#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "job/task.h"
#include "models/model.h"
#include "training/engine/engine.h"

namespace tutti {

class Launcher;

// `tutti train` for a program with a model, data, algorithms or callbacks of its own: Composer's Trainer.
// Under mpirun every rank runs the program. An example: examples/cpp/train_digits.cpp.
//
// The recipe has all other settings, and kind = "program" for the components of the program.
class Trainer {
 public:
  struct Options {
    std::string recipe;                  // a path, or TOML text (with line breaks)
    std::vector<std::string> overrides;  // "train.max_duration=3ep", over the recipe
    std::string run_dir;                 // "" = runs/<run_name>
    std::string resume;                  // "" = as in the recipe, "auto", or a checkpoint's folder
    int local_ranks = 0;                 // ranks in this one process, without mpirun; 0 = mpirun's
    bool json = false;                   // print nothing but the result, as JSON, at the end
    // Builds the model on the meta device for such samples; the same model on every rank.
    std::function<std::shared_ptr<Model>(const SampleSpec& samples)> model;
    std::map<std::string, DatasetPtr> data;  // by "train" or an evaluator's label ("eval")
    // Makes the algorithms, callbacks and log destinations of a rank.
    std::function<Engine::Options(int rank)> listeners;
  };

  explicit Trainer(Options options);
  ~Trainer();

  // Trains until max_duration, then runs the tasks: train_on("1ep"), evaluate_on(), predict_on("eval",
  // callback) (job/task.h). Returns the exit code of the program: 0; 2 if the run cannot start; 3 if the last
  // checkpoint could not be written. Errors are printed to standard error. A rank that fails during the run
  // ends the process.
  //
  // A log destination that hangs is abandoned with its thread, some seconds after all other actors have ended
  // (LoggerDestination::finishes_within), with a warning. Objects that the destination uses must then live as
  // long as the process; the program should then end by _exit.
  //
  // A second call resumes from the last checkpoint of the first and does its own tasks: the weights are as
  // after one call with all tasks. So the recipe must save whole checkpoints (not save_weights_only), and a
  // recipe that limits loading must name in load_path the start of the first call. After a run that was
  // stopped on request (SIGTERM, `tutti stop`) further calls return 0 at once.
  //
  // Under mpirun, MPI ends with the Trainer: a process has one Trainer, whose destructor waits for the other
  // ranks for hang_timeout and 20 s.
  int fit(const std::vector<Task>& then = {});

  // Copies the last checkpoint of the last `fit` to `folder`, which must not exist. All ranks call; rank 0
  // copies, and all throw its error: UserError if no step was trained, OperatingError if the copy fails. A
  // callback can request a checkpoint of a step by State::checkpoint_requested.
  void save_checkpoint(const std::string& folder) const;

 private:
  Options options_;
  std::vector<Task> tasks_;  // of all calls of fit
  bool trained_ = false;     // the last call of fit returned 0
  std::unique_ptr<Launcher> launcher_;
};

// The main of a program. Returns its exit code; after an exception before training 2 (UserError, printed once
// for all ranks, as of a missing file) or 1.
int run_program(const std::function<int()>& program);

}  // namespace tutti
