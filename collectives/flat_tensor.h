#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// What every backend asserts of the tensors it is given.
void check_flat(const at::Tensor& tensor);      // 1-D, contiguous
void check_summable(const at::Tensor& tensor);  // flat, of a dtype that has sums
void check_parts(const at::Tensor& part, const at::Tensor& whole,
                 int parts);  // flat, one dtype, whole = parts * part

}  // namespace tutti
