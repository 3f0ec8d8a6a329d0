#include "models/torch/norms.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <utility>

#include "models/layers/buffer_updates.h"

namespace tutti {

void Norms::add(Buffer& mean, Buffer& variance, Buffer* tracked, at::Tensor handle) {
  const int64_t channels = mean.tensor.numel();
  norms_.push_back({&mean, &variance, tracked, std::move(handle), channels, size_});
  size_ += 2 * channels + 2;
}

int Norms::find(const at::Tensor& running_mean) const {
  const auto match = std::ranges::find_if(norms_, [&](const Norm& norm) {
    return running_mean.is_same(norm.handle.defined() ? norm.handle : norm.mean->tensor);
  });
  return match == norms_.end() ? -1 : static_cast<int>(match - norms_.begin());
}

bool Norms::has(const Buffer& buffer) const {
  return std::ranges::any_of(norms_, [&](const Norm& norm) {
    return &buffer == norm.mean || &buffer == norm.variance || &buffer == norm.tracked;
  });
}

// The two updates r -> (1 - w) r + w x in turn are one such update.
at::Tensor Norms::joined(const at::Tensor& so_far, const at::Tensor& next) const {
  if (!so_far.defined()) return next;
  const int64_t values = next.numel() - 2;
  const at::Tensor later = next.narrow(0, values, 1), earlier = so_far.narrow(0, values, 1) * (1.0 - later),
                   both = earlier + later;
  const at::Tensor share = later / both.clamp_min(1e-30);
  const at::Tensor mean = so_far.narrow(0, 0, values).lerp(next.narrow(0, 0, values), share);
  return at::cat({mean, both, so_far.narrow(0, values + 1, 1) + next.narrow(0, values + 1, 1)});
}

at::Tensor Norms::row(const std::vector<at::Tensor>& statistics) const {
  std::vector<at::Tensor> parts;
  const auto known = std::ranges::find_if(statistics, &at::Tensor::defined);
  for (std::size_t i = 0; i < norms_.size(); ++i)
    parts.push_back(statistics[i].defined() ? statistics[i]
                                            : at::zeros({2 * norms_[i].channels + 2}, known->options()));
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

void Norms::join(RunningStatistics& so_far, const RunningStatistics& next) const {
  for (const Norm& norm : norms_) {
    const int64_t size = 2 * norm.channels + 2;
    const at::Tensor mine = so_far.numbers.narrow(0, norm.first, size);
    mine.copy_(joined(mine, next.numbers.narrow(0, norm.first, size)));
  }
}

void Norms::apply(const RunningStatistics& statistics, BufferUpdates& updates) const {
  const float* const numbers = statistics.numbers.const_data_ptr<float>();
  for (const Norm& norm : norms_) {
    const int64_t weight = norm.first + 2 * norm.channels;
    if (numbers[weight + 1] == 0) continue;
    updates.average(norm.mean->tensor, statistics.numbers, norm.first, numbers[weight]);
    updates.average(norm.variance->tensor, statistics.numbers, norm.first + norm.channels, numbers[weight]);
    if (norm.tracked) updates.add(norm.tracked->tensor, static_cast<int64_t>(numbers[weight + 1]));
  }
}

}  // namespace tutti
