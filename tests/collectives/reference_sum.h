#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

namespace tutti {

// The ordered sum written down as its definition says, an at::add a node: slow and plain.
at::Tensor reference_sum(const std::vector<at::Tensor>& of_ranks);

// Numbers whose sums depend on the order of summation (small ones where the dtype counts in integers): a
// function of (rank, salt), the same in every process.
at::Tensor numbers(at::ScalarType dtype, int64_t count, int rank, uint64_t salt = 0);

bool same_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace tutti
