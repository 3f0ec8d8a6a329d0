#pragma once

#include "algorithms/augmentation/added_transform.h"
#include "algorithms/augmentation/options.h"
#include "data/transforms/augmix.h"

namespace tutti {

// Applies augmix_image (data/transforms/augmix.h) to each image of the training data.
// composer.algorithms.AugMix.
class AugMix final : public AddedTransform {
 public:
  // Throws UserError for options out of range.
  explicit AugMix(const AugMixOptions& options = {}) : AddedTransform("AugMix", augmix_transform(options)) {}
};

}  // namespace tutti
