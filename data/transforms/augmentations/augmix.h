#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"
#include "tensors/draws.h"

namespace tutti {

// UserError for options out of their range.
void check_options(const AugMixOptions& options);

// (1 - m) * image + m * sum of weight * chain over `width` chains of operations on the image, in float32 and
// truncated, with m from Beta(alpha, alpha) and the weights from Dirichlet(alpha, ...). An image is uint8
// [H, W, C] with 3 channels or 1, or float [C, H, W] in [0, 1], which gives float32; of a batch [N, C, H, W]
// each image has its own draws. The input is not written. Hendrycks et al., 2020 (arXiv:1912.02781).
// UserError for bad options and other tensors.
at::Tensor augmix_image(const at::Tensor& image, const AugMixOptions& options, Draws& draws);

// augmix_image of each image. UserError for bad options.
TransformPtr augmix_transform(const AugMixOptions& options);

}  // namespace tutti
