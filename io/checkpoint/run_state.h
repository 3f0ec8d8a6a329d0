#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tutti {

// How far automatic gradient accumulation has come.
struct AccumulationState {
  int count = 1;
  double since = 0;      // when it last changed, in the unit of the grow interval
  std::string unit;      // that one
  int64_t patience = 1;  // intervals to wait before fewer are tried
  bool trying = false;   // fewer than were once too few

  friend bool operator==(const AccumulationState&, const AccumulationState&) = default;
};

// What reduce_lr_on_plateau remembers.
struct PlateauState {
  double multiplier = 1;  // of the optimizer's learning rate
  double best = 0;        // value of the metric
  bool has_best = false;
  int64_t bad = 0;       // evaluations since without an improvement
  int64_t cooldown = 0;  // evaluations that do not count yet

  friend bool operator==(const PlateauState&, const PlateauState&) = default;
};

// How losses are scaled where gradients are in float16.
struct GradScalerState {
  double scale = 0;            // 0 = they are not
  int64_t growth_tracker = 0;  // steps since it changed or would have grown
  double usual_weight = 0;     // a rank's share of the last step's loss weight

  friend bool operator==(const GradScalerState&, const GradScalerState&) = default;
};

// Where the run continues: at an evaluation that was cut short, or in front of the next step.
struct ResumePoint {
  std::string at;                   // the event before it: "batch_end", "epoch_end", "fit_end"; "" = none
  std::vector<std::string> labels;  // of the evaluators that are due

  bool any() const { return !at.empty(); }
  friend bool operator==(const ResumePoint&, const ResumePoint&) = default;
};

// The last step, for whoever hears of its end in the run that goes on: what it came to, and the totals before
// it. Older checkpoints have the totals after it, so that of the intervals only those in batches end with it.
struct LastStep {
  double loss = 0;  // 0 where it was not finite
  double flops = 0;
  double lr = -1;  // the optimizer's when it was over; -1: not known
  int64_t iteration = 0;
  int64_t epoch = 0;
  int64_t sample = 0;
  int64_t token = 0;
  double seconds = 0;

  friend bool operator==(const LastStep&, const LastStep&) = default;
};

// How far a program's tasks have come.
struct TasksState {
  int64_t done = 0;
  std::string after;  // the recipe's max_duration, which they follow: where it is another, they begin anew
  std::string until;  // max_duration as a task has set it, or ""

  friend bool operator==(const TasksState&, const TasksState&) = default;
};

// What a checkpoint holds besides tensors: enough to go on at the same bits. Randomness is a function of the
// seed and the counters, so nothing of it is saved.
struct RunState {
  std::string run_name;
  uint64_t seed = 0;
  int world = 1;
  int64_t step = 0;   // optimizer steps done; batches
  int64_t epoch = 0;  // of the next batch
  int64_t batch_in_epoch = 0;
  LastStep last_step;
  ResumePoint rest;
  TasksState tasks;
  std::string max_duration;  // where it was changed after FIT_START, else ""
  int64_t sample = 0;        // samples and tokens trained on
  int64_t token = 0;
  int64_t sample_in_epoch = 0;
  int64_t token_in_epoch = 0;
  int64_t iteration = 0;
  int64_t epoch_in_iteration = 0;
  int64_t token_in_iteration = 0;
  int64_t global_batch = 0;
  uint64_t data_digest = 0;
  double seconds = 0;  // of training, wall-clock
  double iteration_seconds = 0;
  double epoch_seconds = 0;
  AccumulationState accumulation;
  GradScalerState grad_scaler;
  PlateauState plateau;
  double lagging_rate = 1;  // the next step's multiplier, where rates lag as Composer's do
  std::map<std::string, std::string> listeners;  // "callbacks/EarlyStopper" -> its state
  std::map<std::string, double> metrics;         // as last computed, finite: "train/MulticlassAccuracy"
  bool weights_only = false;                     // the checkpoint holds the model alone
  std::vector<std::string> saved_without;        // patterns of what was left out
  std::string recipe;                            // as resolved, TOML

  std::string to_json() const;
  static RunState from_json(const std::string& text);  // throws OperatingError
};

}  // namespace tutti
