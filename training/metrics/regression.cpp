#include "training/metrics/regression.h"

#include <ATen/ATen.h>

#include <cmath>

#include "models/losses.h"
#include "runtime/error.h"
#include "tensors/tree.h"

namespace tutti {
namespace {

// torch.isclose's default for deviations, and R2Score's.
bool is_zero_error(double error) { return std::abs(error) <= 1e-8; }
bool is_zero_deviation(double deviation) { return std::abs(deviation) <= 1e-4; }

double r2_of(double error, double deviation) {
  if (is_zero_error(error)) return 1.0;
  return is_zero_deviation(deviation) ? 0.0 : 1.0 - error / deviation;
}

}  // namespace

void MeanSquaredError::update(const at::Tensor& outputs, const at::Tensor& target) {
  add(0, (outputs - value_target(outputs, target)).square().sum(at::kDouble));
  sums_[1] += static_cast<double>(target.numel());
}

double MeanSquaredError::compute() const {
  const double mean = sums_[0] / sums_[1];
  return squared_ ? mean : std::sqrt(mean);
}

void MeanAbsoluteError::update(const at::Tensor& outputs, const at::Tensor& target) {
  add(0, (outputs - value_target(outputs, target)).abs().sum(at::kDouble));
  sums_[1] += static_cast<double>(target.numel());
}

void R2Score::update(const at::Tensor& outputs, const at::Tensor& target) {
  const at::Tensor values = value_target(outputs, target);
  if (outputs.dim() > 2 || outputs.numel() != outputs.size(0) * outputs_)
    throw UserError("R2Score: num_outputs is " + std::to_string(outputs_) + ", but the model has outputs " +
                    shape_text(outputs.sizes().slice(1)) + " a sample");
  const at::Tensor y = values.reshape({-1, outputs_}).to(at::kDouble);
  const at::Tensor x = outputs.reshape({-1, outputs_}).to(at::kDouble);
  add(0, at::cat({y.sum(0), y.square().sum(0), (y - x).square().sum(0)}));
  sums_.back() += static_cast<double>(outputs.size(0));
}

double R2Score::compute() const {
  const auto outputs = static_cast<size_t>(outputs_);
  const double samples = sums_.back();
  double sum = 0.0, weights = 0.0;
  for (size_t i = 0; i < outputs; ++i) {
    const double deviation = sums_[outputs + i] - sums_[i] * sums_[i] / samples;
    const double weight = by_variance_ ? deviation : 1.0;
    sum += weight * r2_of(sums_[2 * outputs + i], deviation);
    weights += weight;
  }
  return sum / weights;
}

}  // namespace tutti
