#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "recipe/setting.h"
#include "runtime/clock.h"
#include "training/schedules/schedule.h"
#include "training/time/time.h"

namespace tutti {

// In how many microbatches each rank does a step.
struct AccumulationSettings {
  // From which step on how many; empty: automatic, as many as memory needs.
  std::vector<std::pair<int64_t, int>> steps = {{0, 1}};
  int64_t microbatch_size = 0;                 // samples, in place of a number of microbatches; 0 = not given
  Time grow_interval = {0, TimeUnit::kBatch};  // automatic: after so long half as many are tried; 0 = never

  bool automatic() const { return steps.empty(); }
};

// [train] and [compat]. Iterations are the epochs that they have.
struct TrainSettings {
  Time max_duration;  // not yet stretched by scale_schedule_ratio
  double scale_schedule_ratio = 1.0;
  int64_t iteration_length = 0;  // epochs; 0: one iteration holds the whole training
  Time eval_interval = {1, TimeUnit::kEpoch};
  AccumulationSettings accumulation;
  Nanoseconds hang_timeout = std::chrono::seconds(60);
  bool deterministic_mode = false;
  bool progress_bar = true;
  int64_t progress_interval = 0;  // steps; 0 = by time
  bool log_traces = false;
  bool auto_log_hparams = false;
  bool composer = false;  // Composer's way where tutti's is another

  // Throws UserError where max_duration is in iterations of no length, or the ratio leaves nothing of it.
  static TrainSettings read(const Setting& recipe);

  // How long to train.
  Time planned_duration() const { return max_duration * scale_schedule_ratio; }
  // An interval that the recipe gives. Where iterations have no length it stays in iterations: the whole
  // training is one, so that none ends on the way, as in Composer.
  Time interval(const Setting& setting) const;
  // What a schedule must know of a training of length `duration`.
  Horizon horizon(const Time& duration, int64_t batches_per_epoch, double base_lr) const;
};

}  // namespace tutti
