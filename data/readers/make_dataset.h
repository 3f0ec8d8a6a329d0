#pragma once

#include "data/dataset.h"
#include "recipe/setting.h"

namespace tutti {

// The dataset that a resolved [data.*] section names. `seed` is the recipe's, for those that are drawn.
// Throws UserError that names file:line, key and value; also for what the opened file holds, as far as
// opening looks at it.
DatasetPtr make_dataset(const Setting& section, uint64_t seed = 0);

}  // namespace tutti
