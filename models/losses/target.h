#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// Whether the target of scores [N, C, ...] holds a class index for each item, [N, ...], and not a number for
// each class, shaped as the scores. Throws UserError for any other shape.
bool holds_indices(const at::Tensor& scores, const at::Tensor& target);

// float32 numbers for each class: indices become ones and zeros, a negative index zeros only. Throws
// UserError for an index beyond the classes.
at::Tensor dense_target(const at::Tensor& scores, const at::Tensor& target);

}  // namespace tutti
