#pragma once

#include <functional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/run_state.h"
#include "job/checkpoint_options.h"
#include "job/job.h"
#include "runtime/log.h"
#include "training/engine/engine.h"

namespace tutti {

// Makes the [[algorithms]] of a job's recipe, in order. Throws UserError.
Algorithms make_algorithms(const Job& job);

// Weights may fit only a model on which certain algorithms act (Needs::required_on_load): surgery.
// Checkpoints record these algorithms with their settings.
//
// `algorithms`: a program's, then the job's recipe's. Adds missing algorithms that the checkpoint requires,
// unless excluded by `load`, at their position in the checkpoint's run; calls `warn` for each. Returns all
// required algorithms of the run, for its own checkpoints. Call before the model is built. `from`: the
// checkpoint that the run starts from, with its state; an empty state: none. Throws UserError with the folder
// and the algorithm that cannot be made.
std::vector<RequiredAlgorithm> add_required_algorithms(Algorithms& algorithms, const Job& job,
                                                       const Checkpoint& from = {},
                                                       const LoadOptions& load = {}, const Warn& warn = {});

}  // namespace tutti
