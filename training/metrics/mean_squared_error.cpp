#include "training/metrics/mean_squared_error.h"

#include <ATen/ATen.h>

#include <cmath>

namespace tutti {

void MeanSquaredError::update(const at::Tensor& outputs, const at::Tensor& target) {
  sums_[0] += (outputs - target.reshape(outputs.sizes())).square().sum(at::kDouble).item<double>();
  sums_[1] += static_cast<double>(target.numel());
}

double MeanSquaredError::compute() const {
  const double mean = sums_[0] / sums_[1];
  return squared_ ? mean : std::sqrt(mean);
}

}  // namespace tutti
