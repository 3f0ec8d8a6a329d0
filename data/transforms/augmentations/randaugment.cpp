#include "data/transforms/augmentations/randaugment.h"

#include <vector>

#include "data/transforms/augmentations/image_operations.h"
#include "data/transforms/pixels.h"
#include "runtime/error.h"

namespace tutti {

void check_options(const RandAugmentOptions& options) {
  if (options.severity < 0 || options.severity > 10)
    throw UserError("severity: expected 0 to 10, found " + std::to_string(options.severity));
  if (options.depth < 0)
    throw UserError("depth: expected at least 0, found " + std::to_string(options.depth));
  augmentation_set(options.augmentation_set);
}

at::Tensor randaugment_image(const at::Tensor& image, const RandAugmentOptions& options, Draws& draws) {
  check_options(options);
  const std::vector<ImageOperation> operations = augmentation_set(options.augmentation_set);
  return map_pixels(image, [&](const at::Tensor& pixels) {
    at::Tensor augmented = options.depth > 0 ? pixels : pixels.clone();
    for (int64_t i = 0; i < options.depth; ++i)
      augmented = draw_operation(operations, draws)(augmented, static_cast<double>(options.severity), draws);
    return augmented;
  });
}

TransformPtr randaugment_transform(const RandAugmentOptions& options) {
  check_options(options);
  return pixel_transform([options](const at::Tensor& pixels, Draws& draws) {
    return randaugment_image(pixels, options, draws);
  });
}

TransformPtr RandAugmentOptions::make(const Setting&, const SampleSpec&) const {
  return randaugment_transform(*this);
}

}  // namespace tutti
