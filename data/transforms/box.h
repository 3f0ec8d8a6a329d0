#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "data/images/image_size.h"
#include "tensors/draws.h"

namespace tutti {

// Rows top to bottom - 1 and columns left to right - 1 of images [..., H, W]. Composer's (x1, y1, x2, y2) of
// CutMix in this order, since its x runs along H.
struct Box {
  int64_t top = 0;
  int64_t left = 0;
  int64_t bottom = 0;
  int64_t right = 0;

  int64_t area() const { return (bottom - top) * (right - left); }
  // The box of every image: a view.
  at::Tensor of(const at::Tensor& images) const;
};

// Draws the row and then the column of a centre, and places a box of height x width around the centre: half
// the size (rounded down) to either side, cut off at the edges. Centres lie within the image, or with
// `uniform_sampling` far enough beyond its edges to cover every pixel alike.
Box draw_box(const at::Tensor& images, int64_t height, int64_t width, bool uniform_sampling, Draws& draws);

// Draws a rectangle of an image's pixels, no larger than `most`: its area, as a part of the image's, from the
// range `scale`; the logarithm of width to height from the logarithms of `ratio`; up to ten times until the
// rectangle fits; then its row and column. As torchvision's RandomResizedCrop and RandomErasing.
std::optional<Region> draw_rectangle(const ImageSize& image, const ImageSize& most,
                                     const std::vector<double>& scale, const std::vector<double>& ratio,
                                     Draws& draws);

}  // namespace tutti
