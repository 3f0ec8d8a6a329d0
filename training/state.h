#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tensors/tree.h"
#include "training/optimizers/closure.h"
#include "training/schedules/schedule.h"
#include "training/time/timestamp.h"
#include "training/trainee.h"

namespace tutti {

class Dataset;

// Everything of a run that algorithms and callbacks may see and change: composer.core.State. One a rank. What
// it holds of a step (batch to loss) is scratch: a step that runs out of memory fills it anew.
struct State : Trainee {
  std::string run_name;
  std::string run_dir;
  uint64_t seed = 0;  // of the run, the same on all ranks: Composer's rank_zero_seed
  int rank = 0;
  int world = 1;
  int memory_slot = 0;      // of the meter
  std::string device_name;  // "NVIDIA H100 80GB HBM3"; "" = the CPU

  Time max_duration;       // may be changed in mid-run
  Timestamp timestamp;     // of the batch under way: moves on after the optimizer's step
  Timestamp before_batch;  // `timestamp` before the last batch; of a resumed run its totals alone
  std::string dataloader_label = "train";  // in an evaluation the evaluator's: "eval"
  const Dataset* dataset = nullptr;        // what its batches are read from: data/dataset.h
  int64_t dataloader_len = 0;              // batches of an epoch
  int64_t global_batch = 0;                // samples
  int64_t train_samples = 0;               // of an epoch's data, all ranks together
  int64_t eval_samples = 0;                // of an evaluation's

  Batch batch;              // this rank's; between BEFORE_FORWARD and AFTER_BACKWARD the microbatch under way
  Outputs outputs;          // of the microbatch
  at::Tensor loss;          // its mean, a scalar
  double loss_scale = 1.0;  // of the step's losses, as backward takes them
  int grad_accum = 1;
  bool composer = false;                     // [compat]: Composer's way where tutti's is another
  int64_t device_train_microbatch_size = 0;  // samples; the last microbatches may have fewer

  // At AFTER_TRAIN_BATCH the views' gradients are sums over all ranks, of losses that were scaled; divided by
  // this they are those of the mean loss.
  double grad_scale = 1.0;

  // What the optimizer's base_lr is multiplied with, as [scheduler] says; empty: 1. From FIT_START on an
  // algorithm may put another in its place; when max_duration changes it is the recipe's again.
  Schedule schedule;

  // How a step changes the weights, where it is not the optimizer's own way: an algorithm that needs passes
  // of its own puts it in, not after FIT_START, and ends by calling Closure::step.
  std::function<void(Closure& closure)> closure_step;

  // From AFTER_TRAIN_BATCH on, of the step's whole batch, all ranks together.
  double train_loss = 0.0;  // its mean, in the first pass
  double flops = 0.0;       // what the model says it takes; 0 = it does not say

  // Of the last evaluation or the one under way: batches, and at EVAL_END samples, tokens and seconds too.
  Timestamp eval_timestamp;
  // At the ending events of an evaluation: it was cut short, by a request to stop or for lack of memory, and
  // measured nothing. Who began something at its beginning ends it; nobody concludes anything.
  bool evaluation_cut = false;
  // Metrics as last computed, over all ranks: "eval/MulticlassAccuracy". New ones are there at EVAL_END.
  std::map<std::string, double> metric_values;

  // The names of what is measured, by label: "train", "eval". Empty: not known.
  std::map<std::string, std::vector<std::string>> measured;

  // Part of max_duration that has passed, in [0, 1]; in epochs it moves at their ends only.
  Time elapsed_duration() const { return {elapsed(timestamp, max_duration), TimeUnit::kDuration}; }
  // To be called now and then by what takes long at an event: a rank of which nothing is heard for [train]
  // hang_timeout is taken for one that hangs. Empty where nobody waits for it.
  std::function<void()> still_at_work;
  // Set by a listener, on all ranks in the same step: a checkpoint is taken when that step is over.
  bool checkpoint_requested = false;

  // When the optimizer's step is done. Who moves `timestamp` alone breaks what happens at intervals.
  void to_next_batch(int64_t samples, int64_t tokens, double seconds) {
    before_batch = timestamp;
    timestamp.to_next_batch(samples, tokens, seconds);
  }

  // Ends the training with the batch under way.
  void stop_training() { max_duration = timestamp.get(TimeUnit::kBatch); }
};

}  // namespace tutti
