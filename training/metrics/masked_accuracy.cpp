#include "training/metrics/masked_accuracy.h"

#include <ATen/ATen.h>

namespace tutti {

void MaskedAccuracy::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor counted = target.ne(ignore_index_);
  sums_[0] += outputs.argmax(-1).eq(target).logical_and(counted).sum().item<double>();
  sums_[1] += counted.sum().item<double>();
}

double MaskedAccuracy::compute() const { return sums_[0] / sums_[1]; }

}  // namespace tutti
