#pragma once

#include <cstdint>

#include "io/checkpoint.h"
#include "io/run_state.h"
#include "runtime/setting.h"
#include "training/trainee.h"

namespace tutti {

// What must be the same for a run to go on at the bits that it would have come to.
struct ResumeTerms {
  uint64_t seed = 0;
  int64_t global_batch = 0;
  uint64_t data_digest = 0;
  Setting recipe;  // its [data.train] shuffle and drop_last count, and [model] but for dropout
};

// Copies a checkpoint into the trainee and gives the state of its run. Throws UserError that names the folder
// and what differs: seed, batch, data or tensors.
RunState resume(Trainee& trainee, const Checkpoint& checkpoint, const ResumeTerms& terms);

}  // namespace tutti
