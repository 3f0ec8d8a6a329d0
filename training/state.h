#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/transforms/transform.h"
#include "recipe/time/timestamp.h"
#include "tensors/draws.h"
#include "tensors/norms.h"
#include "tensors/tree.h"
#include "training/optimizers/closure.h"
#include "training/rank_services.h"
#include "training/schedules/schedule.h"
#include "training/trainee.h"

namespace tutti {

class Dataset;

// The state of a run that algorithms and callbacks may see and change: composer.core.State. One per rank.
// Fields of a step (batch to loss) are filled anew when a step is retried.
struct State : Trainee {
  std::string run_name;
  std::string run_dir;
  uint64_t seed = 0;  // of the run, equal on all ranks: Composer's rank_zero_seed

  Time max_duration;                       // may be changed during the run
  Timestamp timestamp;                     // of the current batch; advances after the optimizer's step
  Timestamp before_batch;                  // `timestamp` before the last batch
  std::string dataloader_label = "train";  // in an evaluation the evaluator's label: "eval"
  const Dataset* dataset = nullptr;        // source of the batches (data/dataset.h)
  Transforms added_transforms;             // of the training data; see add_transform
  int64_t dataloader_len = 0;              // batches per epoch
  int64_t global_batch = 0;                // samples
  int64_t train_samples = 0;               // per epoch, over all ranks
  int64_t eval_samples = 0;                // per evaluation

  int64_t first_sample = 0;   // place of the first sample of `batch` in the global batch
  double kept_samples = 1.0;  // fraction of this rank's samples still in `batch`, at the first places
  Batch batch;                // this rank's batch; from BEFORE_FORWARD to AFTER_BACKWARD the microbatch
  Outputs outputs;            // of the microbatch
  at::Tensor loss;            // mean loss of the microbatch, a scalar
  double loss_weight = 0.0;   // of `loss` among the microbatches': the mean's count; 0: not known yet
  double loss_scale = 1.0;    // factor of the losses before backward
  int grad_accum = 1;         // before FIT_START the largest in the recipe
  bool composer = false;      // [compat]: Composer's behaviour where tutti's differs
  int64_t device_train_microbatch_size = 0;  // samples; the last microbatches may be smaller

  // At AFTER_TRAIN_BATCH the views' gradients are sums over all ranks of scaled losses. Dividing by
  // grad_scale gives the gradients of the mean loss.
  double grad_scale = 1.0;

  // Sums float64 numbers, flat, over the ranks that share the parameters, in place. Empty where every rank
  // has all parameters. Called by all ranks alike, also by ranks without rows: from AFTER_TRAIN_BATCH to the
  // next BATCH_START, and in closure_step, but not in the `move` of a pass, where memory may run out on one
  // rank alone. For norms see tensors/norms.h and ParamView::part_of_sum.
  SumOverRanks sum_over_shards() const {
    if (!services->shards()) return {};
    return [of = services](const at::Tensor& values) { of->sum_over_shards(values); };
  }

  // The multiplier of base_lr, from [scheduler]; empty = 1. An algorithm may replace it from FIT_START on; a
  // change of max_duration restores the recipe's.
  Schedule schedule;

  // The rate of the next step in place of the schedule's, for one step. Set by an algorithm when a step is
  // over (from BATCH_END on); saved in checkpoints.
  std::optional<double> next_lr;

  // How often algorithms acted where they may change parameters (Algorithm::writes_parameters).
  int64_t acts_on_parameters = 0;

  // Replaces the optimizer's update. Set, not after FIT_START, by an algorithm that needs additional passes;
  // must end by calling Closure::step.
  std::function<void(Closure& closure)> closure_step;

  // Valid from AFTER_TRAIN_BATCH on, for the step's whole batch over all ranks.
  double train_loss = 0.0;  // mean of the first pass
  double flops = 0.0;       // as counted by the model; 0 = unknown

  // Of the current or last evaluation: batches, and from EVAL_END on samples, tokens and seconds.
  Timestamp eval_timestamp;
  // True at the last events of an evaluation that was cut short by a stop request or for lack of memory.
  // There are no metric values; listeners only clean up.
  bool evaluation_cut = false;
  // Latest metrics over all ranks: "eval/MulticlassAccuracy". Updated before EVAL_END.
  std::map<std::string, double> metric_values;

  // Tensors that evaluations, predictions and exports use in place of the model's, by name; set by an
  // algorithm that averages weights (EMA).
  std::map<std::string, at::Tensor> inference_tensors;

  // Names of measured metrics by label ("train", "eval"). Empty = unknown.
  std::map<std::string, std::vector<std::string>> measured;

  // The random numbers of the current batch for `name`, equal in every attempt at the step. For draws once a
  // batch use place 0: all ranks get the same numbers. For draws once a sample, `place` is its place in the
  // global batch.
  std::unique_ptr<Draws> draws(std::string_view name, int64_t place = 0) const {
    const DrawKey key{name, timestamp.batch, place};
    return draw_source ? draw_source(key) : make_draws(seed, key);
  }
  DrawSource draw_source;  // replaces the run's random numbers; for tests

  // Adds a transform of the training samples, before the data's to_tensor, or last without to_tensor, and
  // after transforms added earlier. Called at FIT_START, by all ranks alike. `name` is the key of its random
  // numbers; a name that was added before is ignored, as a program may train several times. Unfit samples are
  // an error of their read; spec_with (data/readers/transformed_dataset.h) finds the error earlier. A custom
  // loop reads from with_transforms(dataset, added_transforms).
  void add_transform(const std::string& name, TransformPtr transform) {
    append_once(added_transforms, name, std::move(transform));
  }

  // Replaces the batch by a batch with several samples for each old sample, and scales first_sample
  // accordingly.
  void set_batch(Batch samples) {
    if (batch.samples() > 0) first_sample = first_sample * samples.samples() / batch.samples();
    batch = std::move(samples);
  }

  // The run's services for this rank's listeners; a single rank's in a loop of your own. Never null.
  std::shared_ptr<RankServices> services = std::make_shared<RankServices>();

  // Runs `work`, which runs the model outside of training and evaluation, `forwards` times at most. Called by
  // all ranks alike, since sharded parameters are gathered, a unit at a time; only ranks that say so do the
  // work.
  void with_model(bool works, const RankServices::Work& work, int64_t forwards) const {
    services->with_model(works, work, forwards);
  }
  // Calls `visit` for every parameter, by its index, while whole, with all its bits; in an order of its own.
  // Called by all ranks alike, as with_model.
  void visit_parameters(bool works, const RankServices::Visit& visit) const {
    services->visit_parameters(parameters.size(), works, visit);
  }

  // Passed fraction of max_duration, in [0, 1]; with a duration in epochs, updated at ends of epochs.
  Time elapsed_duration() const { return {elapsed(timestamp, max_duration), TimeUnit::kDuration}; }
  // Warns once for all ranks.
  void warn_on_rank_zero(const std::string& what) const {
    if (topology.rank == 0) services->warn(what);
  }
  // Set by a listener, on all ranks in the same step: a checkpoint is taken when that step is over.
  bool checkpoint_requested = false;

  // Call after the optimizer's step. Advancing only `timestamp` would break intervals.
  void to_next_batch(int64_t samples, int64_t tokens, double seconds) {
    before_batch = timestamp;
    timestamp.to_next_batch(samples, tokens, seconds);
  }

  // Ends the training after the current batch. `why`: printed at the end of the run's output.
  void stop_training(std::string why = "") {
    max_duration = timestamp.get(TimeUnit::kBatch);
    stop_reason = std::move(why);
  }
  std::optional<std::string> stop_reason;  // of stop_training in this process
};

}  // namespace tutti
