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
  const auto found = std::ranges::find_if(norms_, [&](const Norm& one) {
    return running_mean.is_same(one.handle.defined() ? one.handle : one.mean->tensor);
  });
  return found == norms_.end() ? -1 : static_cast<int>(found - norms_.begin());
}

bool Norms::has(const Buffer& buffer) const {
  return std::ranges::any_of(norms_, [&](const Norm& one) {
    return &buffer == one.mean || &buffer == one.variance || &buffer == one.tracked;
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

at::Tensor Norms::row(const std::vector<at::Tensor>& found) const {
  std::vector<at::Tensor> parts;
  const auto known = std::ranges::find_if(found, [](const at::Tensor& one) { return one.defined(); });
  for (std::size_t i = 0; i < norms_.size(); ++i)
    parts.push_back(found[i].defined() ? found[i]
                                       : at::zeros({2 * norms_[i].channels + 2}, known->options()));
  return parts.size() == 1 ? parts.front() : at::cat(parts);
}

void Norms::join(RunningStatistics& so_far, const RunningStatistics& next) const {
  for (const Norm& one : norms_) {
    const int64_t size = 2 * one.channels + 2;
    const at::Tensor mine = so_far.numbers.narrow(0, one.first, size);
    mine.copy_(joined(mine, next.numbers.narrow(0, one.first, size)));
  }
}

void Norms::apply(const RunningStatistics& found, BufferUpdates& updates) const {
  const float* const numbers = found.numbers.const_data_ptr<float>();
  for (const Norm& one : norms_) {
    const int64_t weight = one.first + 2 * one.channels;
    if (numbers[weight + 1] == 0) continue;
    updates.average(one.mean->tensor, found.numbers, one.first, numbers[weight]);
    updates.average(one.variance->tensor, found.numbers, one.first + one.channels, numbers[weight]);
    if (one.tracked) updates.add(one.tracked->tensor, static_cast<int64_t>(numbers[weight + 1]));
  }
}

}  // namespace tutti
