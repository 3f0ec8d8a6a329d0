#include "models/layers/buffer_updates.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_add.h>
#include <ATen/ops/_foreach_mul.h>

#include "runtime/error.h"

namespace tutti {

void BufferUpdates::average(const at::Tensor& buffer, const at::Tensor& numbers, int64_t first,
                            double weight) {
  const at::NoGradGuard no_grad;
  if (buffer.is_cpu()) {
    buffer.mul_(1.0 - weight).add_(numbers.narrow(0, first, buffer.numel()).view(buffer.sizes()), weight);
    return;
  }
  TUTTI_ASSERT(numbers.is_alias_of(numbers_), "numbers that are not on the device");
  const int64_t place = numbers.storage_offset() - numbers_.storage_offset() + first;
  Averages& same = averages_[weight];
  same.buffers.push_back(buffer);
  same.numbers.push_back(on_device_.narrow(0, place, buffer.numel()).view(buffer.sizes()));
}

void BufferUpdates::add(const at::Tensor& buffer, int64_t number) {
  if (buffer.is_cpu())
    buffer.add_(number);
  else
    sums_[number].push_back(buffer);
}

void BufferUpdates::run() {
  const at::NoGradGuard no_grad;
  for (auto& [weight, same] : averages_) {
    at::_foreach_mul_(same.buffers, 1.0 - weight);
    at::_foreach_add_(same.buffers, same.numbers, weight);
  }
  for (auto& [number, buffers] : sums_) at::_foreach_add_(buffers, number);
  averages_.clear();
  sums_.clear();
}

}  // namespace tutti
