#include "training/schedules/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/error.h"
#include "runtime/probe/probe.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

// The start of the epoch, for rates that change once per epoch.
Timestamp epoch_begin(Timestamp now) {
  now.batch -= now.batch_in_epoch;
  now.sample -= now.sample_in_epoch;
  now.token -= now.token_in_epoch;
  now.total_wct -= now.epoch_wct;
  now.epoch_wct = 0.0;
  now.batch_in_epoch = now.sample_in_epoch = now.token_in_epoch = 0;
  return now;
}

}  // namespace

Plateau::Plateau(const Setting& section, double base_lr)
    : lower_is_better_(section.at("mode").text() == "min"),
      relative_(section.at("threshold_mode").text() == "rel"),
      threshold_(section.at("threshold").number()),
      factor_(section.at("factor").number()),
      min_lr_(section.at("min_lr").number()),
      eps_(section.at("eps").number()),
      patience_(section.at("patience").integer()),
      cooldown_(section.at("cooldown").integer()),
      base_lr_(base_lr) {}

bool Plateau::observe(double value) {
  if (improves(value)) {
    constexpr double kMost = std::numeric_limits<double>::max();
    state_.best = std::clamp(value, -kMost, kMost);  // JSON has no infinity
    state_.has_best = true;
    state_.bad = 0;
  } else {
    ++state_.bad;
  }
  if (state_.cooldown > 0) {
    --state_.cooldown;
    state_.bad = 0;
  }
  if (state_.bad <= patience_) return false;
  state_.cooldown = cooldown_;
  state_.bad = 0;
  return reduce();
}

bool Plateau::improves(double value) const {
  const double sign = lower_is_better_ ? 1.0 : -1.0;
  if (!state_.has_best) return sign * value < std::numeric_limits<double>::infinity();
  const double bar = relative_ ? state_.best * (1.0 - sign * threshold_) : state_.best - sign * threshold_;
  return sign * value < sign * bar;
}

bool Plateau::reduce() {
  const double old_lr = base_lr_ * state_.multiplier;
  const double new_lr = std::max(old_lr * factor_, min_lr_);
  if (!(old_lr - new_lr > eps_)) return false;
  TUTTI_PROBE("schedule: a plateau lowers the rate");
  state_.multiplier = new_lr / base_lr_;
  return true;
}

LearningRate::LearningRate(const Setting& recipe, Horizon horizon, const std::vector<std::string>& measured)
    : base_(horizon.base_lr) {
  if (!recipe.has("scheduler")) return;
  const Setting& scheduler = recipe.at("scheduler");
  schedule_ = make_schedule(scheduler, horizon);
  lags_ = horizon.composer && is_composer_schedule(scheduler);
  by_epoch_ = is_composer_schedule(scheduler) && scheduler.at("step").text() == "epoch";
  if (by_epoch_ && !lags_)
    schedule_ = [by_time = schedule_](const Timestamp& now) { return by_time(epoch_begin(now)); };
  if (lags_) {  // Composer computes the first value before scaling the training
    horizon.max_duration = horizon.unscaled_duration;
    lagging_ = make_schedule(scheduler, horizon)(Timestamp());
  }
  if (scheduler.at("kind").text() != "reduce_lr_on_plateau") return;
  monitor_ = logged_name(scheduler.at("monitor"), measured);
  plateau_.emplace(scheduler, base_);
}

double LearningRate::at(const Timestamp& now, const Schedule& schedule) const {
  const double alpha = lags_ ? lagging_ : schedule ? schedule(now) : 1.0;
  if (!std::isfinite(alpha)) throw UserError("the schedule gives " + std::to_string(alpha));
  return base_ * alpha * (plateau_ ? plateau_->multiplier() : 1.0);
}

void LearningRate::advance(const Timestamp& before, const Schedule& schedule) {
  if (lags_ && !by_epoch_) lagging_ = schedule ? schedule(before) : 1.0;
}

void LearningRate::advance_epoch(const Timestamp& before, const Schedule& schedule) {
  if (lags_ && by_epoch_) lagging_ = schedule ? schedule(before) : 1.0;
}

bool LearningRate::observe(const LoggedMetrics& metrics) {
  if (!plateau_) return false;
  const auto metric = std::ranges::find(metrics, monitor_, &LoggedMetrics::value_type::first);
  return metric != metrics.end() && plateau_->observe(metric->second);
}

void LearningRate::restore(const PlateauState& state) {
  if (plateau_) plateau_->restore(state);
}

}  // namespace tutti
