#pragma once

#include <vector>

#include "data/transforms/transform.h"

namespace tutti {

// The order of dimensions of images in a file, with N samples.
enum class ImageLayout { kNHWC, kNCHW };

// Permutes each "input" to the layout that transforms take: uint8 images to [height, width, channels], other
// images to [channels, height, width].
TransformPtr layout_transform(ImageLayout layout);

// Numbers of the channels, or a number for all channels; empty: the default.
struct PixelNumbers {
  std::vector<double> scale = {};  // 1/255 for uint8, else 1
  std::vector<double> mean = {};   // 0
  std::vector<double> std = {};    // 1
};

// (input * scale - mean) / std as float32: torchvision's ToTensor and Normalize. Float64, and integers but
// uint8, are float64 until then. Of uint8 images [..., height, width, channels], [..., channels, height,
// width] is returned; `dims` dimensions are an image's. Other inputs keep their shape.
at::Tensor pixels_to_floats(const at::Tensor& images, int64_t dims, const PixelNumbers& numbers);

// The same as a transform of samples' "input", which is then floating point.
TransformPtr pixels_to_floats_transform(const PixelNumbers& numbers);

}  // namespace tutti
