#pragma once

#include "training/engine/callback.h"
#include "training/state.h"

namespace tutti {

// A callback with an interval (see Interval), which passes at the end of a batch, an epoch or an iteration.
class PeriodicCallback : public Callback {
 public:
  explicit PeriodicCallback(const Time& every) : every_(every) {}

  void batch_end(State& state, Logger&) override {
    if (interval(state).at_batch_end(state.before_batch, state.timestamp)) interval_passed(state);
  }
  void epoch_end(State& state, Logger&) override {
    if (interval(state).at_epoch_end(state.before_batch, state.timestamp)) interval_passed(state);
  }
  void iteration_end(State& state, Logger&) override {
    if (interval(state).at_iteration_end(state.before_batch, state.timestamp)) interval_passed(state);
  }

 protected:
  virtual void interval_passed(const State& state) = 0;

 private:
  Interval interval(const State& state) const { return {every_, state.max_duration, state.dataloader_len}; }

  Time every_;
};

}  // namespace tutti
