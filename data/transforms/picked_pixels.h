#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace tutti {

// The pixels of images [..., H, W] in these rows and columns: [..., rows, columns], a new tensor of the same
// dtype. Indices: int64, any number of each, on the host or on the images' device.
at::Tensor pixels_at(const at::Tensor& images, const at::Tensor& rows, const at::Tensor& columns);

// Applies a function of images [..., H, W] to one image of transforms, uint8 [H, W] and [H, W, C] too (see
// height_dim). The result has the dimensions of the image in their order.
at::Tensor on_planes(const at::Tensor& image,
                     const std::function<at::Tensor(const at::Tensor& planes)>& function);

}  // namespace tutti
