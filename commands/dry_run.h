#pragma once

#include <cstdint>

#include "recipe/setting.h"

namespace tutti {

// What the last of some tried steps took.
struct TriedStep {
  int steps = 0;           // tried
  double loss = 0;         // mean over all ranks
  double ms = 0;           // of a rank; all ranks computed one after the other
  double memory_mb = 0;    // at the peak, of the largest rank
  int64_t grad_accum = 1;  // microbatches, if it is automatic: those that memory allowed
};

// Trains so many steps, with all ranks in this process, on a model of its own in a temporary folder: without
// loggers, callbacks, evaluations and a checkpoint to start from. Throws what the training throws, as for a
// model of a plugin whose shapes do not fit.
TriedStep try_steps(Setting recipe, int ranks, int steps);

}  // namespace tutti
