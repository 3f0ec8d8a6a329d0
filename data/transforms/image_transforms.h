#pragma once

#include <array>
#include <optional>
#include <string>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"

namespace tutti {

// Crops, flips and resizes of images, as torchvision.transforms. An image is uint8 [height, width, channels]
// (or without channels), as torchvision takes PIL images, or a floating-point tensor [channels, height,
// width].

// A crop at a place that is drawn: row, then column; no draws if the image has the crop's size.
// torchvision.transforms.RandomCrop. The image may not be smaller than the crop.
at::Tensor random_crop(const at::Tensor& image, const RandomCropOptions& options, Draws& draws);

// The middle of the image; half pixels are rounded to even ones. A smaller image is padded with zeros.
// torchvision.transforms.CenterCrop.
at::Tensor center_crop(const at::Tensor& image, const ImageSize& size);

// The image, with probability `p` mirrored left to right. torchvision.transforms.RandomHorizontalFlip.
at::Tensor flip(const at::Tensor& image, double p, Draws& draws);

// Bilinear interpolation with antialiasing: the triangle filter is as wide as the scale. As
// torchvision.transforms.Resize on tensors; bytes may differ by 1 from those on PIL images.
at::Tensor resize(const at::Tensor& image, const ResizeOptions& options);
ImageSize resized(const ImageSize& image, const ResizeOptions& options);

// The same as transforms of samples.
TransformPtr random_crop_transform(const RandomCropOptions& options);
TransformPtr center_crop_transform(const ImageSize& size);
TransformPtr flip_transform(double p);
TransformPtr resize_transform(const ResizeOptions& options);

}  // namespace tutti
