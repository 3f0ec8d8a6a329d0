#include "collectives/device/equal_parts.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_foreach_copy.h>

#include <algorithm>
#include <vector>

namespace tutti {
namespace {

// One call, which is few kernels for many ranges.
void copy_ranges(const std::vector<at::Tensor>& from, const std::vector<at::Tensor>& to) {
  const at::NoGradGuard no_grad;
  if (!to.empty()) at::_foreach_copy_(to, from, /*non_blocking=*/true);
}

}  // namespace

// Parts that lie side by side in the whole keep their size: a rank may use them there.
EqualParts::EqualParts(const Cut& cut, std::size_t item) : cut_(cut), part_size_(cut.largest_part()) {
  const int64_t step = std::max<int64_t>(1, kAlignment / static_cast<int64_t>(item));
  if (!cut.is_even()) part_size_ = (part_size_ + step - 1) / step * step;
}

at::Tensor EqualParts::part(const at::Tensor& equal, int rank) const {
  return equal.narrow(0, rank * part_size_, part_size_);
}

template <class Copy>
void EqualParts::for_each_run(const Ranks& ranks, Copy copy) const {
  std::vector<at::Tensor> from, to;
  for (int rank = 0; rank < cut_.ranks(); ++rank) {
    if (!ranks(rank)) continue;
    for (const CutRun& run : cut_.runs(rank)) copy(run, rank * part_size_ + run.part, from, to);
  }
  copy_ranges(from, to);
}

void EqualParts::take(const at::Tensor& whole, const Ranks& ranks, const at::Tensor& equal) const {
  for_each_run(ranks, [&](const CutRun& run, int64_t place, auto& from, auto& to) {
    from.push_back(whole.narrow(0, run.whole, run.count));
    to.push_back(equal.narrow(0, place, run.count));
  });
}

void EqualParts::put(const at::Tensor& equal, const Ranks& ranks, const at::Tensor& whole) const {
  for_each_run(ranks, [&](const CutRun& run, int64_t place, auto& from, auto& to) {
    from.push_back(equal.narrow(0, place, run.count));
    to.push_back(whole.narrow(0, run.whole, run.count));
  });
}

}  // namespace tutti
