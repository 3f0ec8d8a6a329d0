#include "training/schedules/learning_rate.h"

#include <algorithm>

#include "recipe/catalog.h"
#include "training/schedules/schedule.h"
#include "training/time/time.h"

namespace tutti {
namespace {

void require_metric(const Setting& monitor, const std::vector<std::string>& measured) {
  if (measured.empty())
    monitor.fail("it is never measured: there is no [data.eval], or [train] eval_interval is 0");
  if (std::ranges::count(measured, monitor.text()) == 0)
    monitor.fail("no evaluator measures it; there are " + joined(measured));
}

// The rate of an epoch is that of its first batch.
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

bool composers_way(const Setting& recipe) { return recipe.at("compat").at("composer").boolean(); }

LearningRate::LearningRate(const Setting& recipe, double base_lr, Horizon horizon,
                           const std::vector<std::string>& measured)
    : base_(base_lr) {
  if (!recipe.has("scheduler")) return;
  const Setting& section = recipe.at("scheduler");
  horizon.base_lr = base_;
  horizon.composer = composers_way(recipe);
  horizon.scale_schedule_ratio = recipe.at("train").at("scale_schedule_ratio").number();
  schedule_ = make_schedule(section, horizon);
  lags_ = composers_way(recipe) && is_composer_schedule(section);
  by_epoch_ = is_composer_schedule(section) && section.at("step").text() == "epoch";
  if (by_epoch_ && !lags_)
    schedule_ = [by_time = schedule_](const Timestamp& now) { return by_time(epoch_begin(now)); };
  if (lags_) {  // Composer takes the first value before it stretches the training
    horizon.max_duration = recipe_time(recipe.at("train").at("max_duration"), recipe);
    lagging_ = make_schedule(section, horizon)(Timestamp());
  }
  if (section.at("kind").text() != "reduce_lr_on_plateau") return;
  require_metric(section.at("monitor"), measured);
  plateau_.emplace(section, base_);
}

double LearningRate::at(const Timestamp& now, const Schedule& schedule) const {
  const double alpha = lags_ ? lagging_ : schedule ? schedule(now) : 1.0;
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
  const auto found = std::ranges::find(metrics, plateau_->monitor(), &LoggedMetrics::value_type::first);
  return found != metrics.end() && plateau_->observe(found->second);
}

void LearningRate::restore(const PlateauState& state, double lagging) {
  if (plateau_) plateau_->restore(state);
  if (lags_) lagging_ = lagging;
}

}  // namespace tutti
