#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tutti {

// Pillow 11.3's operations on the values of pixels, equal to the byte. An image is uint8 [H, W, C], C = 3
// (RGB) or 1 (gray), on the CPU (else UserError); the result is a new image.

// Stretches each channel, so that its darkest value becomes 0 and its brightest 255. ImageOps.autocontrast.
at::Tensor autocontrast(const at::Tensor& image);

// Maps the values of each channel so that all values are about as frequent. ImageOps.equalize.
at::Tensor equalize(const at::Tensor& image);

// Keeps the highest `bits` (0 to 8) bits of each value. ImageOps.posterize.
at::Tensor posterize(const at::Tensor& image, int64_t bits);

// Inverts the values from `threshold` on. ImageOps.solarize.
at::Tensor solarize(const at::Tensor& image, int64_t threshold);

// ImageEnhance: degenerate + factor * (image - degenerate), in float32, clamped to 0..255 and truncated.
// Factor 1 is the image, 0 the degenerate image. That is, of
at::Tensor enhance_color(const at::Tensor& image, double factor);       // the image in gray
at::Tensor enhance_contrast(const at::Tensor& image, double factor);    // the rounded mean of the gray image
at::Tensor enhance_brightness(const at::Tensor& image, double factor);  // black
at::Tensor enhance_sharpness(const at::Tensor& image,
                             double factor);  // the image smoothed (ImageFilter.SMOOTH)

// The image with its hues turned by `factor` of the circle of colors; gray stays. torchvision's adjust_hue on
// PIL images, by way of Pillow's HSV in bytes.
at::Tensor adjust_hue(const at::Tensor& image, double factor);

}  // namespace tutti
