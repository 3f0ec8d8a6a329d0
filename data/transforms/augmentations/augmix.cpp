#include "data/transforms/augmentations/augmix.h"

#include <ATen/ops/zeros.h>

#include <cmath>
#include <vector>

#include "data/transforms/augmentations/image_operations.h"
#include "data/transforms/pixels.h"
#include "runtime/error.h"

namespace tutti {
namespace {

at::Tensor augmix_pixels(const at::Tensor& pixels, const AugMixOptions& options,
                         const std::vector<ImageOperation>& operations, Draws& draws) {
  const std::vector<double> alphas(static_cast<size_t>(options.width), options.alpha);
  const std::vector<double> weights = draws.dirichlet(alphas);
  const auto mixing = static_cast<float>(draws.beta(options.alpha, options.alpha));
  at::Tensor combination = at::zeros(pixels.sizes(), at::kFloat);
  for (const double weight : weights) {
    at::Tensor chain = pixels;
    const int64_t depth = options.depth > 0 ? options.depth : draws.integer(1, 4);
    for (int64_t i = 0; i < depth; ++i)
      chain = draw_operation(operations, draws)(chain, static_cast<double>(options.severity), draws);
    combination.add_(chain.to(at::kFloat).mul_(static_cast<float>(weight)));
  }
  return pixels.to(at::kFloat).mul_(1.0F - mixing).add_(combination.mul_(mixing)).to(at::kByte);
}

}  // namespace

void check_options(const AugMixOptions& options) {
  if (options.severity < 0 || options.severity > 10)
    throw UserError("severity: expected 0 to 10, found " + std::to_string(options.severity));
  if (options.width < 1)
    throw UserError("width: expected at least 1, found " + std::to_string(options.width));
  if (!(options.alpha > 0) || !std::isfinite(options.alpha))
    throw UserError("alpha: expected a finite number above 0, found " + std::to_string(options.alpha));
  augmentation_set(options.augmentation_set);
}

at::Tensor augmix_image(const at::Tensor& image, const AugMixOptions& options, Draws& draws) {
  check_options(options);
  const std::vector<ImageOperation> operations = augmentation_set(options.augmentation_set);
  return map_pixels(
      image, [&](const at::Tensor& pixels) { return augmix_pixels(pixels, options, operations, draws); });
}

TransformPtr augmix_transform(const AugMixOptions& options) {
  check_options(options);
  return pixel_transform(
      [options](const at::Tensor& pixels, Draws& draws) { return augmix_image(pixels, options, draws); });
}

TransformPtr AugMixOptions::make(const Setting&, const SampleSpec&) const { return augmix_transform(*this); }

}  // namespace tutti
