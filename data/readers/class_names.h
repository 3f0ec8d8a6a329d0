#pragma once

#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// The names of the classes of a resolved [data.*] section, in the order of their numbers; empty if the data
// have no names, or cannot be read. CIFAR: the file of names beside the samples (batches.meta.txt,
// fine_label_names.txt, coarse_label_names.txt). HDF5: the attribute "class_names" of the target, a line
// each. Image folders: the folders, or the names of a list or of `classes`. MDS: `classes`, or the texts of
// the target.
std::vector<std::string> class_names(const Setting& section);
// Of training data with these facts (Dataset::fitted, "" = none), which tables keep their names in.
std::vector<std::string> class_names(const Setting& section, const std::string& fitted);

}  // namespace tutti
