#include "models/metric.h"

#include <ATen/core/Tensor.h>

#include <utility>

#include "models/model.h"
#include "runtime/error.h"

namespace tutti {

void Metric::measure(Model& model, const Batch& batch, const Outputs& outputs) {
  model.update_metric(batch, outputs, *this);
}

void Metric::add(std::size_t sum, const at::Tensor& numbers) {
  const auto count = static_cast<std::size_t>(numbers.numel());
  if (sum + count > size_)
    throw UserError("the metric " + name() + " adds " + std::to_string(count) + " numbers to its sums from " +
                    std::to_string(sum) + " on; it has " + std::to_string(size_));
  add_late(first_ + sum, numbers);
}

void Metric::add_late(std::size_t sum, const at::Tensor& numbers) {
  pending_.emplace_back(sum, numbers);
  if (!numbers.is_cpu()) return;
  LateNumbers at_once;
  add_to(at_once);
}

void Metric::add_to(LateNumbers& numbers) {
  for (const auto& [sum, added] : std::exchange(pending_, {}))
    numbers.add(added, [this, sum = sum](std::span<const double> all) { take(sum, all); });
}

void Metric::take(std::size_t sum, std::span<const double> all) {
  for (std::size_t i = 0; i < all.size(); ++i) sums_[sum + i] += all[i];
}

void Metric::begin_batch(int64_t index, int64_t batches) {
  if (!batch_means_) return;
  sums_.resize(size_ * static_cast<std::size_t>(batches));
  first_ = size_ * static_cast<std::size_t>(index);
}

// A batch without a target that counts has no value.
double Metric::compute() const {
  double sum = 0.0, batches = 0.0;
  for (std::size_t first = 0; first < sums_.size(); first += size_) {
    const auto batch_sums = std::span(sums_).subspan(first, size_);
    if (std::ranges::all_of(batch_sums, [](double number) { return number == 0.0; })) continue;
    sum += value_of(batch_sums);
    batches += 1.0;
  }
  return sum / batches;
}

}  // namespace tutti
