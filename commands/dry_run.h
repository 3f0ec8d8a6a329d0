#pragma once

#include <cstdint>

#include "recipe/setting.h"

namespace tutti {

// Time and memory of the last tried step.
struct TriedStep {
  int steps = 0;           // tried
  double loss = 0;         // mean over all ranks
  double ms = 0;           // of a rank; all ranks computed one after the other
  double memory_mb = 0;    // at the peak, of the largest rank
  int64_t grad_accum = 1;  // microbatches, if it is automatic: those that memory allowed
};

// Trains `steps` steps of a new model, with all ranks in this process, in a temporary folder: without
// loggers, callbacks, evaluations and a checkpoint to start from. Passes on exceptions of the training, for
// example if shapes of a plugin's model do not fit.
TriedStep try_steps(Setting recipe, int ranks, int steps);

}  // namespace tutti
