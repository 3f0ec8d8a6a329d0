#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "data/transforms/box.h"
#include "data/transforms/options.h"
#include "data/transforms/transform.h"
#include "tensors/draws.h"

namespace tutti {

// Sets the holes of all images [..., H, W] to 0, in a new tensor. DeVries and Taylor 2017, arXiv:1708.04552.
// composer.functional.cutout_batch.
at::Tensor cutout_batch(const at::Tensor& input, std::span<const Box> holes);
// Draws the holes: squares of side int(length * min(H, W)), less 1 if that is odd.
at::Tensor cutout_batch(const at::Tensor& input, Draws& draws, const CutOutOptions& options = {});

// Cuts other holes out of each image.
TransformPtr cutout_transform(const CutOutOptions& options);

// With probability p sets a rectangle of the image (see image_transforms.h) to `value`, in a new tensor.
// Draws the outcome; area, logarithm of the ratio, row and column of the rectangle, up to ten times until the
// rectangle fits. torchvision.transforms.RandomErasing.
at::Tensor random_erasing(const at::Tensor& image, const RandomErasingOptions& options, Draws& draws);

// random_erasing of each image.
TransformPtr random_erasing_transform(const RandomErasingOptions& options);

}  // namespace tutti
