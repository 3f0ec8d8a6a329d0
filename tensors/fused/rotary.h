#pragma once

#include <ATen/core/Tensor.h>

namespace tutti {

// Rotates the first half of a head's features against the second (rotate_half of transformers): x [N, T,
// heads, features], with the angles' cosines and sines [T, features / 2] or [N, T, features / 2], float32,
// which get no gradient. The result has x's dtype.
at::Tensor rotated(const at::Tensor& x, const at::Tensor& cos, const at::Tensor& sin);

}  // namespace tutti
