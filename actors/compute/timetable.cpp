#include "actors/compute/timetable.h"

#include <cmath>
#include <utility>

namespace tutti {
namespace {

// A fraction of the training in the unit of its duration, of epochs in batches; rounded up.
Time without_fraction(const Time& time, const Time& whole, int64_t batches_per_epoch) {
  if (time.unit() != TimeUnit::kDuration) return time;
  const bool in_epochs = whole.unit() == TimeUnit::kEpoch;
  const double length = whole.value() * (in_epochs ? static_cast<double>(batches_per_epoch) : 1.0);
  return {std::ceil(length * time.value()), in_epochs ? TimeUnit::kBatch : whole.unit()};
}

}  // namespace

Timetable::Timetable(const Job& job, State& state, Evaluations& evaluations)
    : job_(job), state_(state), evaluations_(evaluations) {}

void Timetable::plan() {
  planned_duration_ = state_.max_duration;
  const RunSettings& settings = job_.settings;
  evaluations_.plan(planned_duration_);
  stop_at_ = without_fraction(settings.train.stop_at, planned_duration_, state_.dataloader_len);
  checkpoint_every_.emplace(settings.checkpoint.interval, planned_duration_, state_.dataloader_len);
  const auto measured = evaluation_metrics(evaluations_.evaluators(), *state_.model);
  if (settings.checkpoint.best) best_metric_ = logged_name(settings.checkpoint.best->metric, measured);
  LearningRate rate(
      job_.recipe,
      settings.train.horizon(planned_duration_, state_.dataloader_len, state_.optimizer->base_lr()),
      measured);
  rate.restore(rate_.state());
  if (state_.timestamp.batch > 0) rate.lagging() = rate_.lagging();
  rate_ = std::move(rate);
  state_.schedule = rate_.schedule();
  state_.services->scheduled_lr = [this] { return rate_.at(state_.timestamp, state_.schedule); };
}

void Timetable::advance(const Timestamp& before) {
  rate_.advance(before, state_.schedule);
  set_logged_rate();
}

void Timetable::advance_epoch(const Timestamp& before) {
  rate_.advance_epoch(before, state_.schedule);
  set_logged_rate();
}

// Loggers read the optimizer's rate.
void Timetable::set_logged_rate() {
  if (rate_.lags()) state_.optimizer->set_lr(lr());
}

void Timetable::follow_max_duration() {
  const Time& whole = state_.max_duration;
  if (whole.unit() != planned_duration_.unit() || whole != planned_duration_) plan();
}

}  // namespace tutti
