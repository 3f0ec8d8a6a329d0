#include "training/metrics/cross_entropy.h"

#include <ATen/ATen.h>

namespace tutti {
namespace {

// Dense targets count by their mass: a sample whose probabilities sum to a half is half a sample.
double mean_cross_entropy(const at::Tensor& outputs, const at::Tensor& target) {
  if (!at::isFloatingType(target.scalar_type()))
    return at::cross_entropy_loss(outputs, target).item<double>();
  const double sum = at::cross_entropy_loss(outputs, target, {}, at::Reduction::Sum).item<double>();
  return sum / target.sum().item<double>();
}

}  // namespace

void CrossEntropy::update(const at::Tensor& outputs, const at::Tensor& target) {
  sums_[0] += mean_cross_entropy(outputs, target);
  sums_[1] += 1.0;
}

double CrossEntropy::compute() const { return sums_[0] / sums_[1]; }

}  // namespace tutti
