#pragma once

#include <vector>

#include "data/transforms/options.h"
#include "data/transforms/transform.h"

namespace tutti {

// uint8 [height, width, channels] or [height, width] to float32 [channels, height, width] in [0, 1].
// torchvision.transforms.ToTensor.
at::Tensor to_tensor(const at::Tensor& image);

// (tensor - mean) / std of each channel; float [..., channels, height, width]; a number, or a number for each
// channel. torchvision.transforms.Normalize.
at::Tensor normalize(const at::Tensor& tensor, const std::vector<double>& mean,
                     const std::vector<double>& std);

// As transforms of samples' "input".
TransformPtr to_tensor_transform();
TransformPtr normalize_transform(const std::vector<double>& mean, const std::vector<double>& std);

}  // namespace tutti
