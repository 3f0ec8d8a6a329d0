#pragma once

#include "algorithms/augmentation/added_transform.h"
#include "algorithms/augmentation/options.h"
#include "data/transforms/randaugment.h"

namespace tutti {

// Applies randaugment_image (data/transforms/randaugment.h) to each image of the training data.
// composer.algorithms.RandAugment.
class RandAugment final : public AddedTransform {
 public:
  // Throws UserError for options out of range.
  explicit RandAugment(const RandAugmentOptions& options = {})
      : AddedTransform("RandAugment", randaugment_transform(options)) {}
};

}  // namespace tutti
