#include "training/optimizers/square_sums.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace tutti {

SquareSums::SquareSums(size_t most)
    : bins_(at::empty({static_cast<int64_t>(most) * ExactSum::kBins}, at::kDouble)) {
  sums_.reserve(most);
}

void SquareSums::clear(size_t count) { sums_.assign(count, ExactSum()); }

void SquareSums::add(size_t place, const ExactSum& sum) {
  const std::lock_guard lock(mutex_);
  sums_[place].add(sum);
}

void SquareSums::sum_over(const SumOverRanks& ranks) {
  if (!ranks) return;
  auto* const bins = bins_.mutable_data_ptr<double>();
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i].store(bins + i * ExactSum::kBins);
  ranks(bins_.narrow(0, 0, std::ssize(sums_) * ExactSum::kBins));
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] = ExactSum(bins + i * ExactSum::kBins);
}

}  // namespace tutti
