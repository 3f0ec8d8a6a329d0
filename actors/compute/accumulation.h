#pragma once

#include <cstdint>

#include "io/checkpoint/run_state.h"
#include "recipe/time/timestamp.h"
#include "training/settings.h"

namespace tutti {

// The number of microbatches of a step on each rank: [train] grad_accum (a number, numbers by step, or
// "auto"), or the number that device_train_microbatch_size makes. A pure function of facts that all ranks
// know, so equal on all ranks.
//
// "auto" starts at 1 and doubles when some rank runs out of memory. After each grad_accum_grow_interval (if
// given) without lack of memory, half the number is tried. If memory runs out within the next interval, the
// wait for the next try doubles.
class Accumulation {
 public:
  // `device_batch`: the most samples of a batch on any rank.
  explicit Accumulation(AccumulationSettings settings, int64_t device_batch = 0);

  // Samples of a microbatch, as for torch.split; 0 = not given.
  int64_t microbatch_size() const { return settings_.microbatch_size; }
  bool automatic() const { return settings_.automatic(); }
  int count(int64_t step) const;

  // Call when a step is aborted. False if no larger number is possible: the user gave the number, or every
  // rank had one sample at a time. `largest`: the most samples of the batch on any rank.
  bool out_of_memory(const Timestamp& now, int64_t largest);
  // Call when a step is committed. True if the next step tries fewer microbatches.
  bool committed(const Timestamp& now);

  const AccumulationState& state() const { return state_; }
  // `now`: where the run resumes. A grow interval in another unit than the saved run's counts from `now`.
  void restore(const AccumulationState& state, const Timestamp& now);

 private:
  AccumulationSettings settings_;
  AccumulationState state_;
};

}  // namespace tutti
