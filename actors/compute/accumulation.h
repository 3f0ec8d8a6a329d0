#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "io/checkpoint/run_state.h"
#include "recipe/setting.h"
#include "training/time/timestamp.h"

namespace tutti {

// In how many microbatches each rank does a step: as [train] grad_accum says (a number, numbers by step, or
// "auto"), or as many as device_train_microbatch_size makes. A pure function of what all ranks know, so that
// all come to the same.
//
// "auto" starts at 1 and doubles when some rank runs out of memory. Where grad_accum_grow_interval is given,
// half as many are tried once that much training has gone by without; when they are too few (memory runs out
// before it has gone by again), the wait for the next try doubles.
class Accumulation {
 public:
  // `train` resolved; `device_batch`: samples of a whole batch on the rank with the most.
  explicit Accumulation(const Setting& train, int64_t device_batch = 0);

  // Samples of a microbatch where the recipe gives them, as torch.split takes them; else 0.
  int64_t microbatch_size() const { return microbatch_size_; }
  bool automatic() const { return steps_.empty(); }
  int count(int64_t step) const;

  // The step at hand is aborted. False when there is nothing smaller to try: the number is the user's, or no
  // rank had more than one sample at a time. `largest` = samples of the batch on the rank with the most.
  bool out_of_memory(const Timestamp& now, int64_t largest);
  // A step is done. Whether the next one tries fewer.
  bool committed(const Timestamp& now);

  const AccumulationState& state() const { return state_; }
  // `now`: where the run goes on. A grow interval in another unit than the saved run's counts from there.
  void restore(const AccumulationState& state, const Timestamp& now);

 private:
  std::vector<std::pair<int64_t, int>> steps_;  // from step, count; empty: automatic
  int64_t microbatch_size_ = 0;
  Time grow_interval_;
  AccumulationState state_;
};

}  // namespace tutti
