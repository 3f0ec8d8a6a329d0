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

// Trains from a program of one's own: what `tutti train` does, with a model, data, algorithms and callbacks
// that the program brings. Under mpirun every rank runs the program. Composer's Trainer.
// examples/cpp/train_digits.cpp is one.
//
// The recipe has what the program does not bring; what it does bring is called kind = "program" there.
class Trainer {
 public:
  struct Options {
    std::string recipe;                  // a path, or with line breaks in it the TOML itself
    std::vector<std::string> overrides;  // "train.max_duration=3ep", over the recipe
    std::string run_dir;                 // "" = runs/<run_name>
    std::string resume;                  // "" = as the recipe says, "auto", or the folder of a checkpoint
    // Builds the model, on the meta device, to fit the samples; on every rank the same.
    std::function<std::shared_ptr<Model>(const SampleSpec& samples)> model;
    std::map<std::string, DatasetPtr> data;  // "train", and evaluators by their labels: "eval"
    // What listens to the training of a rank: algorithms, callbacks, destinations of logs.
    std::function<Engine::Options(int rank)> listeners;
  };

  explicit Trainer(Options options);
  ~Trainer();

  // Trains until max_duration, then does the tasks: train_on("1ep"), evaluate_on(), predict_on("eval", take)
  // (job/task.h). The exit code of the program: 0; 2 when the run cannot start, 3 when its last
  // checkpoint could not be written; what went wrong is on standard error. A rank that fails in mid-run ends
  // the process.
  //
  // A destination of logs that never returns from a call does not keep this from returning: some seconds
  // after all else has ended (LoggerDestination::finishes_within) a warning names it, and its thread, which
  // cannot be ended, is left behind. What tutti gave it lives on; what the destination itself refers to must,
  // too, as long as the process. Such a program had better end by _exit.
  //
  // A second call resumes from the last checkpoint of the first and does the tasks that it is given: the
  // weights are those of one call with all tasks. So the recipe must save whole checkpoints (not
  // save_weights_only).
  int fit(const std::vector<Task>& then = {});

  // Copies the checkpoint that the last `fit` left to `folder`, which must not exist. Only rank 0 does; all
  // ranks may call. Throws UserError if nothing was trained, OperatingError if the copy fails. A callback
  // asks for a checkpoint of a step by State::checkpoint_requested.
  void save_checkpoint(const std::string& folder) const;

 private:
  Options options_;
  std::vector<Task> tasks_;  // of all calls of fit
  bool trained_ = false;     // the last call of fit ended well
  std::unique_ptr<Launcher> launcher_;
};

// The main of a program: what it throws before it trains is one error for all ranks, and exit code 2 where it
// is a UserError, as of a file that is not there; else 1.
int run_program(const std::function<int()>& program);

}  // namespace tutti
