#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// The pixels of images [..., H, W] in these rows and columns: [..., rows, columns], a new tensor of the same
// dtype. Indices: int64, any number of each.
at::Tensor pixels_at(const at::Tensor& images, const at::Tensor& rows, const at::Tensor& columns);

}  // namespace tutti
