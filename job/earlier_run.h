#pragma once

#include <cstdint>

#include "job/job.h"

namespace tutti {

// Choices that a recipe leaves open, which a job takes from the resumed run. Written into job.recipe, for the
// run and its replay.

// The seed, which is `fresh` if no run is resumed.
void choose_seed(Job& job, uint64_t fresh);

// The teacher's checkpoint, where the recipe has the folder of a run: the checkpoint that the resumed run
// used, else the newest. Other teachers stay unchanged.
void choose_teachers(Job& job);

}  // namespace tutti
