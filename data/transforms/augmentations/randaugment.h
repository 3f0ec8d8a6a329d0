#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"
#include "tensors/draws.h"

namespace tutti {

// UserError for options out of their range.
void check_options(const RandAugmentOptions& options);

// The image after `depth` operations, each drawn from the set. An image is uint8 [H, W, C] with 3 channels or
// 1, or float [C, H, W] in [0, 1], which gives float32; of a batch [N, C, H, W] each image has its own draws.
// The input is not written. Cubuk et al., 2020 (arXiv:1909.13719). UserError for bad options and other
// tensors.
at::Tensor randaugment_image(const at::Tensor& image, const RandAugmentOptions& options, Draws& draws);

// randaugment_image of each image. UserError for bad options.
TransformPtr randaugment_transform(const RandAugmentOptions& options);

}  // namespace tutti
