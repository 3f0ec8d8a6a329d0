#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "tensors/exact_sum.h"

namespace tutti {

// Norms (L2) that do not depend on how tensors are cut by rows over ranks, nor on threads. A row is a slice
// of dim 0. Its squares are summed in float64, in an order that only its own size decides; the sums of rows,
// and of rows of less than 16 numbers the squares of the numbers, are added exactly. On CPUs; other tensors
// are copied. One pass over memory; allocate only for tensors in 16 bits (4 MB) and tensors whose rows have
// gaps or are not one behind the other.

// Sum of the squares of each row: float64 [rows]; a scalar is a row.
at::Tensor row_squares(const at::Tensor& tensor);

// Sum of all squares; 0 for an undefined or empty tensor.
ExactSum square_sum(const at::Tensor& tensor);

// Sums a float64 tensor over the ranks that have rows of the same tensors, in place. Empty: each tensor is
// whole.
using SumOverRanks = std::function<void(const at::Tensor& bins)>;

// The norm of each tensor, of all its rows; one sum over ranks. All ranks give as many.
std::vector<double> norms(std::span<const ExactSum> squares, const SumOverRanks& sum_over_ranks);
std::vector<double> norms(std::span<const at::Tensor> tensors, const SumOverRanks& sum_over_ranks);

// The norm of all tensors together.
double total_norm(std::span<const at::Tensor> tensors, const SumOverRanks& sum_over_ranks);

}  // namespace tutti
