#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "data/transforms/transform.h"
#include "tensors/draws.h"

namespace tutti {

// Composer's names and defaults.
struct AugMixOptions {
  int64_t severity = 3;                  // the level of every operation: 0 (weak) to 10 (strong)
  int64_t depth = -1;                    // operations of a chain; below 1: each chain draws 1, 2 or 3
  int64_t width = 3;                     // chains; at least 1
  double alpha = 1.0;                    // of the Dirichlet and Beta distributions of the weights; above 0
  std::string augmentation_set = "all";  // all, safe or original: data/transforms/image_operations.h
};

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
