#pragma once

#include <string>

#include "actors/job.h"

namespace tutti {

// The job of a command that looks at a run without being one: no folders are made.
Job lone_job(const Setting& recipe, int ranks);

// Loads a checkpoint's model: the one at `named`, which is a checkpoint's or a run's folder; of "", the run's
// newest good one. Gives its folder, "" where there is none. Throws UserError, blaming --checkpoint.
std::string load_model(Trainee& trainee, const Job& job, const std::string& named);

// What is passed over on the way to a good checkpoint, on standard error.
void tell_passed_over(const std::string& what);

}  // namespace tutti
