#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tutti {

// If cross_entropy_of_rows is the faster way: for the many classes of a language model, on devices that have
// a kernel of it.
bool has_cross_entropy_of_rows(const at::Tensor& scores, const at::Tensor& target);

// The cross entropy of each row of scores [N, C] against class indices [N] (int64), float32 [N]; 0 where the
// index is `ignore_index`. All of it is computed in float32, also of scores of 16 bits, and kept for backward
// is one number a row: libtorch's log_softmax and nll_loss write, cast and read probabilities as large as the
// scores six times. An index outside of [0, C) is an assertion of the device's.
at::Tensor cross_entropy_of_rows(const at::Tensor& scores, const at::Tensor& target, int64_t ignore_index);

}  // namespace tutti
