#pragma once

#include "job/job.h"

namespace tutti {

// Throws UserError with the recipe's line if a loss of values, such as mse, is given the names of classes as
// targets: it would be trained on their places in the order of names.
void require_no_names_as_values(const Job& job);

// Lines about classes of the training data that have no samples: class 0, or most of them, as one damaged
// label makes them.
std::vector<std::string> label_advice(const Job& job);

// True if a loss of values compares the data's targets with outputs: they are then no classes.
bool has_loss_of_values(const Job& job);

}  // namespace tutti
