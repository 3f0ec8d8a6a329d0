#pragma once

#include "job/job.h"

namespace tutti {

// The recipe's mark of targets that do not count; the data have kIgnoredTarget in its place.
int64_t ignore_index(const Job& job);

// Checks that the evaluator's data have the arrays and classes of the training data, and suit the model and
// the metrics. `pieces`: into how many the model is cut. Throws UserError with the section's key.
void require_suits_training(const Job& job, const Evaluator& evaluator, int pieces);

}  // namespace tutti
