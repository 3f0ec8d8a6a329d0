#pragma once

#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensors/draws.h"

namespace tutti {

// An operation that RandAugment and AugMix apply: a function of Composer's augmentation_primitives.py, in its
// two halves. Images: data/transforms/pixels.h. The random numbers are drawn in Composer's order.
struct ImageOperation {
  std::string_view name;  // Composer's: "shear_x", "color_original"

  // Pillow's parameter for an image at a level from 0 (weak) to 10 (strong): bits (posterize), degrees
  // (rotate), a threshold (solarize), a factor (shear, color and the like) or pixels (translate). NaN if the
  // operation has none.
  double (*draw)(double level, const at::Tensor& image, Draws& draws);

  // The image changed by that parameter, equal to Pillow's to the byte; a new tensor. Parameters of bits,
  // thresholds and pixels are whole numbers.
  at::Tensor (*apply)(const at::Tensor& image, double parameter);

  at::Tensor operator()(const at::Tensor& image, double level, Draws& draws) const;
};

// All operations: the set "all", then the originals.
std::span<const ImageOperation> image_operations();

// The operations of a set of Composer's in its order. "all" has every operation but the originals; "safe"
// leaves out operations of the test sets CIFAR-10-C and ImageNet-C (no color, contrast, brightness,
// sharpness); "original" has these four with the parameters of Hendrycks et al., 2020 (arXiv:1912.02781).
// UserError for another name.
std::vector<ImageOperation> augmentation_set(const std::string& name);

// One of the operations, all equally likely.
const ImageOperation& draw_operation(std::span<const ImageOperation> operations, Draws& draws);

}  // namespace tutti
