#include "training/metrics/binary_f1_score.h"

#include <ATen/ATen.h>

#include "training/metrics/class_counts.h"

namespace tutti {

void BinaryF1Score::update(const at::Tensor& outputs, const at::Tensor& target) {
  require_classes(name(), outputs, 2);
  const at::Tensor guess = outputs.argmax(1);
  const auto add = [&](size_t sum, int64_t guessed, int64_t wanted) {
    sums_[sum] += guess.eq(guessed).logical_and(target.eq(wanted)).sum().item<double>();
  };
  add(0, 1, 1);
  add(1, 0, 1);
  add(2, 1, 0);
}

double BinaryF1Score::compute() const { return sums_[0] / (sums_[0] + 0.5 * (sums_[1] + sums_[2])); }

}  // namespace tutti
