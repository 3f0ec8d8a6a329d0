#pragma once

#include <array>
#include <optional>
#include <string>

#include "data/transforms/transform.h"

namespace tutti {

// Crops, flips and resizes of images, as torchvision.transforms. An image is uint8 [height, width, channels]
// (or without channels), as torchvision takes PIL images, or a floating-point tensor [channels, height,
// width].

struct RandomCropOptions {
  ImageSize size;                                 // of the crop
  std::optional<std::array<int64_t, 4>> padding;  // pixels added left, top, right, bottom, before all else
  bool pad_if_needed = false;                     // an image that is too small is padded on both sides
  double fill = 0;                                // value of added pixels if padding_mode is "constant"
  std::string padding_mode = "constant";          // or "edge", "reflect", "symmetric", as numpy.pad
};

// A crop at a place that is drawn: row, then column; no draws if the image has the crop's size.
// torchvision.transforms.RandomCrop. The image may not be smaller than the crop.
at::Tensor random_crop(const at::Tensor& image, const RandomCropOptions& options, Draws& draws);

// The middle of the image; half pixels are rounded to even ones. A smaller image is padded with zeros.
// torchvision.transforms.CenterCrop.
at::Tensor center_crop(const at::Tensor& image, const ImageSize& size);

// The image, with probability `p` mirrored left to right. torchvision.transforms.RandomHorizontalFlip.
at::Tensor flip(const at::Tensor& image, double p, Draws& draws);

struct ResizeOptions {
  std::optional<ImageSize> size;    // of the result; else `smaller_edge`
  int64_t smaller_edge = 0;         // the height-to-width ratio is kept
  std::optional<int64_t> max_size;  // with smaller_edge: the larger edge has at most this many pixels
};

// Bilinear interpolation with antialiasing: the triangle filter is as wide as the scale. As
// torchvision.transforms.Resize on tensors; bytes may differ by 1 from those on PIL images.
at::Tensor resize(const at::Tensor& image, const ResizeOptions& options);
ImageSize resized(const ImageSize& image, const ResizeOptions& options);

// As transforms of samples.
TransformPtr random_crop_transform(const RandomCropOptions& options);
TransformPtr center_crop_transform(const ImageSize& size);
TransformPtr flip_transform(double p);
TransformPtr resize_transform(const ResizeOptions& options);

}  // namespace tutti
