#include "training/work_in_parts.h"

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace tutti {
namespace {

constexpr int64_t kMostForwards = 256;  // planned at a time

// What is left to do, as the rank that works knows it.
int64_t agreed(RankServices& services, int64_t left) {
  if (!services.shards()) return left;
  const at::Tensor sum = at::full({1}, static_cast<double>(left), at::kDouble);
  services.sum_over_shards(sum);
  return sum.item<int64_t>();
}

}  // namespace

void work_in_parts(const State& state, bool works, const PartedWork& job) {
  if (!works && !state.services->shards()) return;
  int64_t left = job.items, part = job.part;
  while (left > 0) {
    const int64_t parts =
        std::min(std::max<int64_t>(kMostForwards / job.forwards, 1), (left + part - 1) / part);
    const int64_t round = std::min(left, parts * part);
    int64_t done = 0;
    const auto work = [&] {
      while (done < round) {
        const int64_t count = std::min(part, round - done);
        job.work(job.items - left + done, count);
        done += count;
      }
    };
    const auto failure =
        state.services->attempt([&] { state.with_model(works, work, parts * job.forwards); });
    const bool too_large = works && failure && std::min(part, round - done) == 1;
    TORCH_CHECK_WITH(OutOfMemoryError, !too_large, *failure);
    const int64_t before = left;
    left = agreed(*state.services, works ? left - done : 0);
    if (left > before - round) part = (std::min(part, left) + 1) / 2;
  }
}

}  // namespace tutti
