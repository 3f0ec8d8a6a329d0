#pragma once

#include "job/job.h"

namespace tutti {

// The recipe's mark of targets that do not count; the data have kIgnoredTarget in its place.
int64_t ignore_index(const Setting& recipe);

// Checks that the evaluator's data have the arrays, dtypes and classes of the training data, and suit the
// model and the metrics. `pieces`: into how many the model is cut. Throws UserError with the section's key.
void require_suits_training(const Job& job, const Evaluator& evaluator, int pieces);

// Tries the model, after surgery, on a sample of the evaluator's data, if its shape differs from the training
// data's. Throws UserError with the section's key if the model does not take the sample.
void require_takes_samples(const State& state, const Job& job, const Evaluator& evaluator);

}  // namespace tutti
