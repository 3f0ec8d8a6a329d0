#pragma once

#include "job/job.h"

namespace tutti {

// Throws UserError with the recipe's line if a loss of values, such as mse, has the names of classes as
// targets: the model would learn their places in the order of names.
void require_no_names_as_values(const Job& job);

// Writes the names of the classes of an image folder to train on into the recipe, so that the run knows them
// without the folder.
void keep_class_names(Setting& recipe);

// Lines about classes of the training data that have no samples: class 0, or most classes, as by one damaged
// label.
std::vector<std::string> label_advice(const Job& job);

// True if a loss of values compares the data's targets with outputs: then targets are no classes.
bool has_loss_of_values(const Job& job);

}  // namespace tutti
