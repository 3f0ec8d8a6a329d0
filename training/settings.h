#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "recipe/setting.h"
#include "recipe/time/time.h"
#include "runtime/clock.h"
#include "training/schedules/schedule.h"

namespace tutti {

// The number of microbatches of a step on each rank.
struct AccumulationSettings {
  // (first step, number of microbatches); empty: automatic, as many as memory needs.
  std::vector<std::pair<int64_t, int>> steps = {{0, 1}};
  int64_t microbatch_size = 0;                 // samples, instead of a number of microbatches; 0 = not given
  Time grow_interval = {0, TimeUnit::kBatch};  // automatic: when to try half the number; 0 = never

  bool automatic() const { return steps.empty(); }
};

// [train] and [compat]. Iterations are converted to epochs.
struct TrainSettings {
  Time max_duration;  // before scaling by scale_schedule_ratio
  double scale_schedule_ratio = 1.0;
  int64_t iteration_length = 0;  // epochs; 0: the whole training is one iteration
  Time eval_interval = {1, TimeUnit::kEpoch};
  AccumulationSettings accumulation;
  Nanoseconds hang_timeout = std::chrono::seconds(60);
  bool deterministic_mode = false;
  bool cuda_graphs = false;
  bool progress_bar = true;
  int64_t progress_interval = 0;  // steps; 0 = by time
  bool log_traces = false;
  bool auto_log_hparams = false;
  bool composer = false;  // where Composer and tutti differ, do as Composer

  // Throws UserError if max_duration is in iterations without a length, or 0 by the ratio.
  static TrainSettings read(const Setting& recipe);

  Time planned_duration() const { return max_duration * scale_schedule_ratio; }
  // An interval of the recipe, with iterations converted to epochs. If iterations have no length, the whole
  // training is one iteration, and an interval in iterations never fires before the end, as in Composer.
  Time interval(const Setting& setting) const;
  // The horizon of schedules for a training of length `duration`.
  Horizon horizon(const Time& duration, int64_t batches_per_epoch, double base_lr) const;
};

}  // namespace tutti
