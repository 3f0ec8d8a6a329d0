#pragma once

#include <cstdint>

#include "job/job.h"

namespace tutti {

// What a job takes from the run that it resumes, where the recipe leaves it open. Written into job.recipe, so
// that the run keeps it, and a replay has it.

// The seed, which is `fresh` if no run is resumed.
void choose_seed(Job& job, uint64_t fresh);

// The teacher's checkpoint, where the recipe has the folder of a run: the checkpoint that the resumed run
// used, else the newest. Other teachers stay unchanged.
void choose_teachers(Job& job);

}  // namespace tutti
