#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>

#include "training/engine/logger.h"

namespace tutti {

// A copy of the first `most` images of a batch [N, C, H, W], with `channels_last` [N, H, W, C], or [N, H, W],
// of any type; C is 1 or 3. Nothing where it is no such batch, or its images have one pixel.
//
// Pixels are 0 to 255, as Weights & Biases shows images: of an image with a value below 0 its least value is
// black and its greatest white; else, where none is above 1, 1 is white; else, and of whole numbers, they are
// taken as they are. What lies beyond is cut off.
std::optional<LoggedImages> images_of(const std::string& name, const at::Tensor& batch, int64_t most,
                                      bool channels_last);

// Of the first `most` images the class with the highest score, of scores [N, C, H, W] or, with
// `channels_last`, [N, H, W, C]. Nothing where they are no such scores.
std::optional<LoggedMask> mask_of_scores(const std::string& name, const at::Tensor& scores, int64_t most,
                                         bool channels_last);
// The classes themselves, whole numbers [N, H, W]; `ignored` stands for those below 0. Nothing where they are
// none.
std::optional<LoggedMask> mask_of_classes(const std::string& name, const at::Tensor& classes, int64_t most,
                                          int32_t ignored);

// The images side by side, eight to a row, on black: one image, [height, width, channels].
LoggedImages grid_of(const LoggedImages& images);
// The same of a mask, in the colours of PASCAL VOC: class 0 is black.
LoggedImages grid_of(const LoggedMask& mask);

}  // namespace tutti
