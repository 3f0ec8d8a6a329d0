#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "training/engine/logger.h"

namespace tutti {

// Copies the first `max_images` images of a batch [N, C, H, W], with `channels_last` [N, H, W, C], or [N, H,
// W], of any dtype; C is 1 or 3. Empty for other shapes and for images of one pixel.
//
// Pixels are 0 to 255, scaled per image as Weights & Biases does: if any value is below 0, the minimum is
// black and the maximum white; else, if no value is above 1, 1 is white; else, and for integers, values are
// used unchanged and clamped.
std::optional<LoggedImages> images_of(const std::string& name, const at::Tensor& batch, int64_t max_images,
                                      bool channels_last);

// The class with the highest score for each pixel of the first `max_images` images; scores [N, C, H, W] or,
// with `channels_last`, [N, H, W, C]. Empty for other shapes.
std::optional<LoggedMask> mask_of_scores(const std::string& name, const at::Tensor& scores,
                                         int64_t max_images, bool channels_last);
// The given classes, integers [N, H, W], with `ignored` in place of negative classes. Empty for other shapes
// or dtypes.
std::optional<LoggedMask> mask_of_classes(const std::string& name, const at::Tensor& classes,
                                          int64_t max_images, int32_t ignored);

// The images in rows of eight on black: one image [height, width, channels].
LoggedImages grid_of(const LoggedImages& images);
// The same for a mask in the colours of PASCAL VOC: class 0 is black.
LoggedImages grid_of(const LoggedMask& mask);

}  // namespace tutti
