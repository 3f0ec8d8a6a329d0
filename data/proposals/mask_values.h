#pragma once

#include <string>
#include <vector>

#include "data/proposals/proposal.h"

namespace tutti {

// What the pixels of masks are for a recipe.
struct MaskValues {
  int64_t classes = 0;      // 0: not known, of masks that are not PNG
  RecipeLines data, model;  // keys of both sections of data, and of the model
};

// Looks at PNG masks, at most a thousand. Throws UserError with the file of a mask that is none.
MaskValues look_at_mask_values(const std::vector<std::string>& files);

// The same as lines of a proposal for pictures, with the metric of segmentations.
void add_masks(Proposal& proposal, const std::vector<std::string>& files);

}  // namespace tutti
