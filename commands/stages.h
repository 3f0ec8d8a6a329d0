#pragma once

#include <string>

#include "commands/entry.h"
#include "recipe/setting.h"

namespace tutti {

// Trains the stages of a recipe one after the other, stage k as the run RUN/stage-k, from the newest weights
// of the stage before. A training that is resumed continues with the stage that is not over. Before the first
// step the data of all stages are opened. Returns the exit code of the last run; a run that fails or is
// stopped ends the training. Collective under mpirun: the disk must show all ranks the same stages.
int train_stages(const TrainOptions& options);

// The output of `tutti check` for a recipe with stages: of each stage, as if it began from initial weights.
std::string check_stages_text(const CheckOptions& options);

}  // namespace tutti
