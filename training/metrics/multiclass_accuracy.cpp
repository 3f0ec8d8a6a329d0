#include "training/metrics/multiclass_accuracy.h"

#include <ATen/ATen.h>

namespace tutti {

void MulticlassAccuracy::update(const at::Tensor& outputs, const at::Tensor& target) {
  sums_[0] += outputs.argmax(1).eq(target).sum().item<double>();
  sums_[1] += target.ne(kIgnored).sum().item<double>();
}

double MulticlassAccuracy::compute() const { return sums_[0] / sums_[1]; }

}  // namespace tutti
