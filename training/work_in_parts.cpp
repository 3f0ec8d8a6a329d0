#include "training/work_in_parts.h"

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace tutti {
namespace {

// What is left to do, as the rank that works knows it.
int64_t agreed(const State& state, int64_t left) {
  if (!state.sum_over_shards) return left;
  const at::Tensor sum = at::full({1}, static_cast<double>(left), at::kDouble);
  state.sum_over_shards(sum);
  return sum.item<int64_t>();
}

}  // namespace

void work_in_parts(const State& state, bool works, const PartedWork& job) {
  int64_t left = job.items, part = job.part;
  while (left > 0) {
    int64_t done = 0;
    const auto work = [&] {
      while (done < left) {
        const int64_t count = std::min(part, left - done);
        job.work(job.items - left + done, count);
        done += count;
      }
    };
    try {
      state.with_model(works, work, (left + part - 1) / part * job.forwards);
    } catch (const c10::OutOfMemoryError&) {
      if (std::min(part, left - done) == 1) throw;
    }
    left = agreed(state, works ? left - done : 0);
    part = (std::min(part, left) + 1) / 2;
  }
}

}  // namespace tutti
