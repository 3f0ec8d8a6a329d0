#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "recipe/setting.h"
#include "recipe/time/timestamp.h"

namespace tutti {

// State of automatic gradient accumulation.
struct AccumulationState {
  int count = 1;         // microbatches
  double since = 0;      // time of the last change, in `unit`
  std::string unit;      // of the grow interval
  int64_t patience = 1;  // intervals before fewer microbatches are tried
  bool trying = false;   // `count` was halved and may turn out too small

  friend bool operator==(const AccumulationState&, const AccumulationState&) = default;
};

// State of reduce_lr_on_plateau.
struct PlateauState {
  double multiplier = 1;  // of the optimizer's learning rate
  double best = 0;        // best value of the metric
  bool has_best = false;
  int64_t bad = 0;       // evaluations without an improvement since
  int64_t cooldown = 0;  // evaluations left that do not count

  friend bool operator==(const PlateauState&, const PlateauState&) = default;
};

// State of the gradient scaler for float16.
struct GradScalerState {
  double scale = 0;            // 0 = no scaling
  int64_t growth_tracker = 0;  // steps since the scale changed or would have grown
  double usual_weight = 0;     // a rank's share of the last step's loss weight

  friend bool operator==(const GradScalerState&, const GradScalerState&) = default;
};

// Where a resumed run continues: with an evaluation that was cut short, or with the next step.
struct ResumePoint {
  enum class Place { kAtStep, kAtBatchEnd, kAtEpochEnd, kAtFitEnd };

  Place at = Place::kAtStep;        // event of the evaluation; kAtStep: none
  std::vector<std::string> labels;  // of the evaluators that are due

  bool any() const { return at != Place::kAtStep; }
  friend bool operator==(const ResumePoint&, const ResumePoint&) = default;
};

// The last step's results and the time before the step, for listeners that see the step's end in the resumed
// run. Older checkpoints have only totals, before or after the step.
struct LastStep {
  double loss = 0;
  double flops = 0;
  double lr = -1;  // the optimizer's after the step; -1: unknown
  Timestamp before;

  friend bool operator==(const LastStep&, const LastStep&) = default;
};

// Values of the metric by which the best checkpoints are kept.
struct BestState {
  bool measured = false;  // after this step, as `value`
  double value = 0;
  std::vector<double> best;  // of the run so far, best first

  friend bool operator==(const BestState&, const BestState&) = default;
};

// Progress of a program's tasks.
struct TasksState {
  int64_t done = 0;
  std::string after;  // the recipe's max_duration; after a change the tasks begin anew
  std::string until;  // max_duration set by a task, or ""

  friend bool operator==(const TasksState&, const TasksState&) = default;
};

// An algorithm without which the weights do not fit the model.
struct RequiredAlgorithm {
  std::string name;      // "BlurPool"
  std::string settings;  // a recipe with its [[algorithms]] section alone; "": of a program

  // The section of `settings`, which are not ""; errors are of `file`.
  Setting section(const std::string& file) const;

  friend bool operator==(const RequiredAlgorithm&, const RequiredAlgorithm&) = default;
};

// What another program's checkpoint says of the names of its tensors.
struct ImportedState {
  std::string program;                   // "Composer 0.32.1"; "" = the checkpoint is tutti's
  std::string path;                      // absolute
  std::vector<std::string> weights;      // names of parameters and buffers, in the order of the file
  std::vector<int64_t> groups;           // sizes of the optimizer's groups, if its state is by number
  int64_t step = 0;                      // updates of parameters without a count of their own
  std::vector<std::string> left_behind;  // what tutti does not take over, with the reasons

  friend bool operator==(const ImportedState&, const ImportedState&) = default;
};

// The content of a checkpoint besides tensors: enough to resume with the same bits. Random numbers are a
// function of the seed and the counters, so no generator is saved.
struct RunState {
  std::string run_name;
  uint64_t seed = 0;
  int world = 1;
  Timestamp time;  // of the next batch
  LastStep last_step;
  ResumePoint rest;
  TasksState tasks;
  std::string max_duration;  // if changed after FIT_START, else ""
  int64_t global_batch = 0;
  uint64_t data_digest = 0;
  std::string fitted;           // Dataset::fitted of the training data
  bool several_labels = false;  // an item may belong to several classes; older checkpoints do not say so
  AccumulationState accumulation;
  GradScalerState grad_scaler;
  PlateauState plateau;
  BestState best;
  double lagging_rate = 1;                       // the next step's multiplier, if rates lag as Composer's do
  double next_lr = -1;                           // of the next step, set by an algorithm; -1 = the schedule's
  std::map<std::string, std::string> listeners;  // "callbacks/EarlyStopper" -> its state
  std::map<std::string, double> metrics;         // last values, if finite: "train/MulticlassAccuracy"
  std::vector<RequiredAlgorithm> required_algorithms;  // in the order of the run
  bool weights_only = false;                           // the checkpoint has only the model
  std::vector<std::string> saved_without;              // patterns of names that were not saved
  std::string recipe;                                  // resolved, as TOML
  // Of tensors that have another name since surgery: "0.conv.weight" -> "0.weight".
  std::map<std::string, std::string> names_before_surgery;
  ImportedState imported;

  std::string to_json() const;
  static RunState from_json(const std::string& text);  // throws OperatingError
};

}  // namespace tutti
