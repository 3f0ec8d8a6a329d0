#pragma once

#include <array>
#include <optional>
#include <string>

#include "data/transforms/geometry.h"
#include "data/transforms/options.h"
#include "data/transforms/transform.h"

namespace tutti {

// Crops, flips and resizes of images, as torchvision.transforms. An image is uint8 [height, width, channels]
// (or without channels), as torchvision takes PIL images, or a floating-point tensor [channels, height,
// width].

// A crop at a place that is drawn: row, then column; no draws if the image has the crop's size.
// torchvision.transforms.RandomCrop. The image may not be smaller than the crop.
at::Tensor random_crop(const at::Tensor& image, const RandomCropOptions& options, Draws& draws);

// The middle of the image; half pixels are rounded to even numbers. A smaller image is padded with zeros.
// torchvision.transforms.CenterCrop.
at::Tensor center_crop(const at::Tensor& image, const ImageSize& size);

// The image, with probability `p` mirrored left to right. torchvision.transforms.RandomHorizontalFlip.
at::Tensor flip(const at::Tensor& image, double p, Draws& draws);

// Interpolation with antialiasing: bilinear is a triangle filter as wide as the scale. As
// torchvision.transforms.Resize on tensors; bytes may differ by 1 from results on PIL images.
at::Tensor resize(const at::Tensor& image, const ResizeOptions& options);
ImageSize resized(const ImageSize& image, const ResizeOptions& options);

// A part of the image: draw_rectangle (box.h), or the largest part in the middle if none fits.
// torchvision.transforms.RandomResizedCrop.get_params.
Region draw_part(const ImageSize& image, const std::vector<double>& scale, const std::vector<double>& ratio,
                 Draws& draws);

// The same as transforms of samples, and of the masks and boxes in `arrays`.
TransformPtr random_crop_transform(const RandomCropOptions& options, PixelArrays arrays = {});
TransformPtr center_crop_transform(const ImageSize& size, PixelArrays arrays = {});
TransformPtr random_resized_crop_transform(const RandomResizedCropOptions& options, PixelArrays arrays = {});
TransformPtr flip_transform(double p, PixelArrays arrays = {});
TransformPtr vertical_flip_transform(double p, PixelArrays arrays = {});
TransformPtr resize_transform(const ResizeOptions& options, PixelArrays arrays = {});

}  // namespace tutti
