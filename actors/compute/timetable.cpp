#include "actors/compute/timetable.h"

#include <utility>

#include "training/time/time.h"

namespace tutti {

Timetable::Timetable(const Setting& recipe, State& state, Evaluations& evaluations)
    : recipe_(recipe),
      state_(state),
      evaluations_(evaluations),
      iteration_length_(iteration_length(recipe)) {}

void Timetable::plan() {
  planned_duration_ = state_.max_duration;
  evaluations_.plan(recipe_, planned_duration_);
  checkpoint_every_.emplace(recipe_interval(recipe_.at("checkpoint").at("interval"), recipe_),
                            planned_duration_, state_.dataloader_len);
  LearningRate rate(recipe_, state_.optimizer->base_lr(), {planned_duration_, state_.dataloader_len},
                    evaluation_metrics(evaluations_.evaluators(), recipe_, *state_.model));
  if (state_.timestamp.batch > 0) rate.restore(rate_.state(), rate_.lagging());
  rate_ = std::move(rate);
  state_.schedule = rate_.schedule();
}

void Timetable::advance(const Timestamp& before) {
  rate_.advance(before, state_.schedule);
  show_rate();
}

void Timetable::advance_epoch(const Timestamp& before) {
  rate_.advance_epoch(before, state_.schedule);
  show_rate();
}

// For those who log it.
void Timetable::show_rate() {
  if (rate_.lags()) state_.optimizer->set_lr(lr());
}

void Timetable::follow_max_duration() {
  const Time& whole = state_.max_duration;
  if (whole.unit() != planned_duration_.unit() || whole != planned_duration_) plan();
}

}  // namespace tutti
