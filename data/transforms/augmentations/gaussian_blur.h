#pragma once

#include <ATen/core/Tensor.h>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"

namespace tutti {

// The image (see image_transforms.h) convolved with a Gaussian kernel of `size` (odd edges), mirrored at its
// edges; bytes are rounded. torchvision.transforms.functional.gaussian_blur. The image is larger than half
// the kernel, else UserError.
at::Tensor gaussian_blur(const at::Tensor& image, const ImageSize& size, double sigma);

// The same for each image, with a sigma drawn from [sigma[0], sigma[1]].
TransformPtr gaussian_blur_transform(const ImageSize& size, const std::vector<double>& sigma);

}  // namespace tutti
