#pragma once

#include "job/job.h"
#include "tests/golden/golden_file.h"
#include "tests/golden/scripted_draws.h"

namespace tutti {

// The random numbers that Composer drew in a case of trainer.h5, in/draws, but for those that it did not use.
DrawScript draws_of(const GoldenCase& c);

// Each rank of the job draws the numbers of the script in place of its own. A rank has a copy of the script.
void give_draws(Job& job, const DrawScript& script);

}  // namespace tutti
