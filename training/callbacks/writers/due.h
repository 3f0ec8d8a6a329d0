#pragma once

#include "training/state.h"

namespace tutti {

// Tells a callback when its interval has passed: see Interval.
class Due {
 public:
  explicit Due(const Time& every) : every_(every) {}

  bool at_batch_end(const State& state) const {
    return interval(state).at_batch_end(state.before_batch, state.timestamp);
  }
  bool at_epoch_end(const State& state) const {
    return interval(state).at_epoch_end(state.before_batch, state.timestamp);
  }
  bool at_iteration_end(const State& state) const {
    return interval(state).at_iteration_end(state.before_batch, state.timestamp);
  }

 private:
  Interval interval(const State& state) const { return {every_, state.max_duration, state.dataloader_len}; }

  Time every_;
};

}  // namespace tutti
