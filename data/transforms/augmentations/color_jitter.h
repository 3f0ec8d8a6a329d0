#pragma once

#include <ATen/core/Tensor.h>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"
#include "tensors/draws.h"

namespace tutti {

// Changes brightness, contrast, saturation and hue of an image by factors from these ranges, in an order that
// is drawn: first the order, then the factors with a range, in this order.
// torchvision.transforms.ColorJitter. Images: data/transforms/pixels.h.
at::Tensor color_jitter(const at::Tensor& pixels, const ColorJitterOptions& ranges, Draws& draws);

// color_jitter of each image.
TransformPtr color_jitter_transform(const ColorJitterOptions& ranges);

}  // namespace tutti
