#pragma once

#include <string>

#include "data/dataset.h"
#include "data/transforms/ignore_index.h"
#include "data/transforms/transform.h"
#include "recipe/setting.h"

namespace tutti {

// The transforms of a data section's resolved [[...transforms]], in order, for such samples. Throws UserError
// with the recipe's line if samples do not suit a transform.
Transforms make_transforms(const Setting& tables, SampleSpec samples);

// The dataset with the transforms of its section: `layout`, then [[...transforms]], then `scale`, `mean` and
// `std`. uint8 images of a given layout become float32 in any case. Targets equal to `ignore_index` become
// kIgnoredTarget before. `owner`: the owner of the transforms' random numbers, for per-rank datasets; "" =
// all ranks. Throws UserError with the recipe's line.
DatasetPtr with_recipe_transforms(const Setting& section, DatasetPtr dataset, const std::string& owner = "",
                                  int64_t ignore_index = kIgnoredTarget);

}  // namespace tutti
