#pragma once

#include "data/transforms/augmix.h"
#include "data/transforms/randaugment.h"
#include "data/transforms/transform.h"
#include "recipe/setting.h"

namespace tutti {

// The transforms of a data section's resolved [[...transforms]], in order, for such samples. Throws UserError
// with the recipe's line if samples do not suit a transform.
Transforms make_transforms(const Setting& tables, SampleSpec samples);

// The options of a table with the keys of data/transforms/catalog.h.
RandAugmentOptions randaugment_options(const Setting& section);
AugMixOptions augmix_options(const Setting& section);

}  // namespace tutti
