#pragma once

#include <string>

#include "tensors/tree.h"

namespace tutti {

// For the error that samples lack `array`: "; it has ...", and how a recipe would give the arrays of an HDF5
// file the names that models read. Of two arrays, the one with a number a sample is the target.
std::string naming_hint(const SampleSpec& samples, const std::string& array);

}  // namespace tutti
