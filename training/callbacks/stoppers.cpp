#include "training/callbacks/stoppers.h"

#include <cmath>

#include "io/formats/json_line.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {

EarlyStopper::EarlyStopper(WatchedMetric metric, double min_delta, const Time& patience)
    : metric_(std::move(metric)), min_delta_(std::abs(min_delta)), patience_(patience) {
  if (patience.unit() != TimeUnit::kEpoch && patience.unit() != TimeUnit::kBatch)
    throw UserError("patience: expected epochs or batches, found " + patience.text());
}

void EarlyStopper::look(State& state) {
  if (!metric_.is_of(state)) return;
  const double value = metric_.value(state);
  const Time now = state.timestamp.get(patience_.unit());
  if (!best_ || (metric_.better(value, best_->value, state) && std::abs(value - best_->value) > min_delta_))
    best_ = {value, now};
  if (now - best_->at > patience_) state.stop_training();
}

std::string EarlyStopper::state() const {
  if (!best_) return "";
  return json_line({{"best", best_->value}, {"best_at", best_->at.value()}});
}

void EarlyStopper::restore(const std::string& json) {
  best_ = {json_number(json, "best"), Time(json_number(json, "best_at"), patience_.unit())};
}

void NaNMonitor::after_train_batch(State& state, Logger&) {
  if (!std::isnan(state.train_loss)) return;
  throw OperatingError("NaNMonitor: the training loss of step " + std::to_string(state.timestamp.batch + 1) +
                       " is not a number");
}

}  // namespace tutti
