#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <mutex>
#include <vector>

#include "tensors/exact_sum.h"
#include "tensors/norms.h"

namespace tutti {

// Sums of squares over parts of parameters and over ranks: the same bits for every cut. All memory is
// allocated by the constructor.
class SquareSums {
 public:
  explicit SquareSums(size_t most = 0);

  void clear(size_t count);
  // From any thread.
  void add(size_t place, const ExactSum& sum);
  // Over the ranks; empty: each sum is whole.
  void sum_over(const SumOverRanks& ranks);
  double value(size_t place) const { return sums_[place].value(); }

 private:
  std::vector<ExactSum> sums_;
  at::Tensor bins_;  // [most, ExactSum::kBins]
  std::mutex mutex_;
};

}  // namespace tutti
