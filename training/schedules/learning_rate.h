#pragma once

#include <optional>
#include <string>

#include "io/checkpoint/run_state.h"
#include "recipe/setting.h"
#include "training/engine/logger.h"
#include "training/schedules/schedule.h"

namespace tutti {

// reduce_lr_on_plateau: lowers the learning rate when a metric has stopped improving. As torch's
// ReduceLROnPlateau: a value that is not a number is no improvement.
class Plateau {
 public:
  // `section`: a resolved [scheduler] of that kind; `base_lr`: the optimizer's.
  Plateau(const Setting& section, double base_lr);

  const std::string& monitor() const { return monitor_; }  // the metric's name
  double multiplier() const { return state_.multiplier; }  // of base_lr

  // The metric's value at an evaluation. Whether the rate is lower from here on.
  bool observe(double value);

  const PlateauState& state() const { return state_; }
  void restore(const PlateauState& state) { state_ = state; }

 private:
  bool improves(double value) const;
  bool reduce();

  std::string monitor_;
  bool lower_is_better_;
  bool relative_;  // to the best value so far
  double threshold_;
  double factor_, min_lr_, eps_;
  int64_t patience_, cooldown_;  // evaluations
  double base_lr_;
  PlateauState state_;
};

// What each step multiplies with: the optimizer's rate as [scheduler] changes it, by time or by what
// evaluations find. A pure function of what all ranks know, so that all come to the same.
class LearningRate {
 public:
  LearningRate() = default;  // 0 throughout
  // `recipe` resolved; `measured`: what evaluations measure, by its names in metrics.jsonl. Throws UserError.
  LearningRate(const Setting& recipe, Horizon horizon, const std::vector<std::string>& measured);

  // What [scheduler] asks for; empty: the rate stays.
  const Schedule& schedule() const { return schedule_; }

  // Of the batch that begins at `now`, by a schedule that may have taken the place of that one.
  double at(const Timestamp& now, const Schedule& schedule) const;
  // A batch is done that began at `before`. Where [compat] asks for Composer's way the next one has the
  // schedule's rate at `before`: there it is stepped before time moves on. Stepped by epochs it is at the
  // end of one, before that is counted.
  void advance(const Timestamp& before, const Schedule& schedule);
  void advance_epoch(const Timestamp& before, const Schedule& schedule);

  // What an evaluation found. Whether the rate is lower for it.
  bool observe(const LoggedMetrics& metrics);

  PlateauState state() const { return plateau_ ? plateau_->state() : PlateauState(); }
  bool lags() const { return lags_; }
  double lagging() const { return lagging_; }  // the multiplier of the next batch, where it lags
  void restore(const PlateauState& state, double lagging);

 private:
  double base_ = 0.0;
  Schedule schedule_;
  bool lags_ = false;
  bool by_epoch_ = false;
  double lagging_ = 1.0;
  std::optional<Plateau> plateau_;
};

}  // namespace tutti
