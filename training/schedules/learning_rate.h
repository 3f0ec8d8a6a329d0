#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/run_state.h"
#include "recipe/setting.h"
#include "training/metrics/logged_metrics.h"
#include "training/schedules/schedule.h"

namespace tutti {

// reduce_lr_on_plateau: lowers the learning rate when a metric stops improving, as torch's
// ReduceLROnPlateau. NaN is no improvement.
class Plateau {
 public:
  // `section`: a resolved [scheduler] of this kind; `base_lr`: the optimizer's.
  Plateau(const Setting& section, double base_lr);

  double multiplier() const { return state_.multiplier; }  // of base_lr

  // Takes the metric's value at an evaluation; true if the rate was lowered.
  bool observe(double value);

  const PlateauState& state() const { return state_; }
  void restore(const PlateauState& state) { state_ = state; }

 private:
  bool improves(double value) const;
  bool reduce();

  bool lower_is_better_;
  bool relative_;  // to the best value so far
  double threshold_;
  double factor_, min_lr_, eps_;
  int64_t patience_, cooldown_;  // evaluations
  double base_lr_;
  PlateauState state_;
};

// The learning rate of each step, by time or by evaluations as [scheduler] says. Depends only on data that
// is equal on all ranks.
class LearningRate {
 public:
  LearningRate() = default;  // always 0
  // `recipe`: resolved; `measured`: the metrics of evaluations, named as in metrics.jsonl. Throws UserError.
  LearningRate(const Setting& recipe, Horizon horizon, const std::vector<std::string>& measured);

  // The schedule of [scheduler]; empty = constant.
  const Schedule& schedule() const { return schedule_; }

  // The rate of the batch that begins at `now`, by `schedule`, which may replace schedule().
  double at(const Timestamp& now, const Schedule& schedule) const;
  // Call after a batch that began at `before`, and after an epoch before its count. Has an effect only in
  // Composer's mode, where the next rate is the schedule's value at `before`.
  void advance(const Timestamp& before, const Schedule& schedule);
  void advance_epoch(const Timestamp& before, const Schedule& schedule);

  // Takes the metrics of an evaluation; true if the rate was lowered.
  bool observe(const LoggedMetrics& metrics);

  bool lags() const { return lags_; }
  PlateauState state() const { return plateau_ ? plateau_->state() : PlateauState(); }
  void restore(const PlateauState& state);
  double& lagging() { return lagging_; }  // multiplier of the next batch in Composer's mode

 private:
  double base_ = 0.0;
  Schedule schedule_;
  bool lags_ = false;
  bool by_epoch_ = false;
  double lagging_ = 1.0;
  std::optional<Plateau> plateau_;
  std::string monitor_;  // the logged name of the observed metric
};

}  // namespace tutti
