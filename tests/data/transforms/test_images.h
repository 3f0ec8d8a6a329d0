#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tutti {

// Images of noise, RGB and gray, down to a single pixel, one of them with strides.
std::vector<at::Tensor> test_images();

}  // namespace tutti
