#include "sharding/tree_sum.h"

#include <ATen/core/grad_mode.h>

#include <utility>

#include "runtime/probe/probe.h"

namespace tutti {

at::Tensor TreeSum::add(std::size_t tensor, int64_t index, at::Tensor value, bool last) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor>& partial = partial_[tensor];
  std::size_t level = 0;
  for (; index & (int64_t{1} << level); ++level) {
    const at::Tensor left = std::exchange(partial[level], at::Tensor());
    if (left.defined() != value.defined()) TUTTI_PROBE("grains: a gradient is missing in a grain");
    if (left.defined()) value = value.defined() ? left.add_(value) : left;
  }
  if (last) return value;
  if (partial.size() <= level) partial.resize(level + 1);
  partial[level] = std::move(value);
  return {};
}

void TreeSum::clear() {
  for (auto& partial : partial_) partial.clear();
}

double TreeSum::bytes() const {
  double bytes = 0;
  for (const auto& partial : partial_)
    for (const at::Tensor& tensor : partial)
      if (tensor.defined()) bytes += static_cast<double>(tensor.nbytes());
  return bytes;
}

void fill_with_nothing(const at::Tensor& tensor) { at::Tensor(tensor).fill_(-0.0); }

}  // namespace tutti
