#pragma once

#include <vector>

#include "recipe/catalog.h"

namespace tutti {

// The entries of [[algorithms]] that change the model.
std::vector<Entry> surgery_entries();

}  // namespace tutti
