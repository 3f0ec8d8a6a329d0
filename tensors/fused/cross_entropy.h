#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace tutti {

// True if cross_entropy_of_rows takes these tensors and is faster than libtorch's: scores [N, C] of float32
// or 16 bits over many classes, as a language model's, and N int64 indices, on a device with a kernel for
// this function.
bool has_cross_entropy_of_rows(const at::Tensor& scores, const at::Tensor& target);

// The cross entropy of each row of scores [N, C] against class indices [N] (int64), float32 [N]; 0 where the
// index is `ignore_index`. Computed in float32, also for scores of 16 bits; one number a row is kept for
// backward: libtorch's log_softmax and nll_loss write, cast and read probabilities as large as the scores six
// times. Another index outside of [0, C) is a failed assertion on a device, and a UserError on the CPU.
at::Tensor cross_entropy_of_rows(const at::Tensor& scores, const at::Tensor& target, int64_t ignore_index);

}  // namespace tutti
