#include "training/metrics/cross_entropy.h"

#include <ATen/ATen.h>

#include "models/losses.h"

namespace tutti {

void CrossEntropy::update(const at::Tensor& outputs, const at::Tensor& target) {
  SoftCrossEntropyOptions options{.weight = {}, .ignore_index = ignore_index_};
  if (batch_means_) {
    sums_[0] += share() * soft_cross_entropy(outputs, target, options).item<double>();
    sums_[1] += share();
    return;
  }
  options.reduction = LossReduction::kNone;
  const at::Tensor counted = holds_indices(outputs, target) ? target.ne(ignore_index_) : target;
  sums_[0] += soft_cross_entropy(outputs, target, options).sum(at::kDouble).item<double>();
  sums_[1] += counted.sum(at::kDouble).item<double>();
}

double CrossEntropy::compute() const { return sums_[0] / sums_[1]; }

}  // namespace tutti
