#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>

namespace tutti {

// Pillow 11.3's operations on the places of pixels, equal to the byte. An image is uint8 [H, W, C], C = 3 or
// 1, on the CPU (else UserError); the result is a new one of the same size, black where the image does not
// reach.

// result(x, y) = image(ax + by + c, dx + ey + f) for the matrix (a, b, c, d, e, f), at the centres of pixels,
// bilinear in double, truncated. Image.transform(size, AFFINE, matrix, BILINEAR).
using AffineMatrix = std::array<double, 6>;
at::Tensor affine(const at::Tensor& image, const AffineMatrix& matrix);

// Counter-clockwise about the centre. Image.rotate(degrees, BILINEAR).
at::Tensor rotate(const at::Tensor& image, double degrees);

at::Tensor shear_x(const at::Tensor& image, double factor);  // result(x, y) = image(x + factor * y, y)
at::Tensor shear_y(const at::Tensor& image, double factor);  // image(x, y + factor * x)

at::Tensor translate_x(const at::Tensor& image, int64_t pixels);  // image(x + pixels, y)
at::Tensor translate_y(const at::Tensor& image, int64_t pixels);  // image(x, y + pixels)

}  // namespace tutti
