#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "data/transforms/transform.h"

namespace tutti {

// An image's pixels are uint8 [H, W, C], C = 3 (RGB) or 1 (gray), as Pillow's images are.

// The pixels themselves, contiguous. UserError for any other tensor, an empty tensor, or a tensor on a GPU.
at::Tensor require_pixels(const at::Tensor& image);

// Pixels of a float image [C, H, W] in [0, 1]: value * 255, truncated. torchvision's to_pil_image.
at::Tensor to_pixels(const at::Tensor& image);

// float32 [C, H, W] in [0, 1]: pixel / 255. torchvision's to_tensor.
at::Tensor from_pixels(const at::Tensor& pixels);

// Applies a function of pixels to an image or to each image of a batch: pixels give pixels, a float tensor
// [C, H, W] or [N, C, H, W] in [0, 1] gives a float32 tensor. Composer's map_pillow_function. UserError for
// any other tensor.
using PixelFunction = std::function<at::Tensor(const at::Tensor& pixels)>;
at::Tensor map_pixels(const at::Tensor& images, const PixelFunction& function);

// A transform of each image by a function that keeps the size: uint8 [H, W, C] or [H, W], or floats
// [C, H, W], C = 3 or 1. Throws UserError for floats outside of [0, 1]. `moves_pixels`: of ImageTransform.
TransformPtr pixel_transform(std::function<at::Tensor(const at::Tensor& pixels, Draws& draws)> function,
                             bool moves_pixels = true);

}  // namespace tutti
