#include "training/work_in_parts.h"

#include <ATen/ops/full.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "tensors/out_of_memory.h"
#include "tensors/torch_error.h"

namespace tutti {
namespace {

constexpr int64_t kMostForwards = 256;  // planned at a time

// The work left, as known to the working rank.
int64_t agreed(const State& state, int64_t left) {
  if (!state.sum_over_shards) return left;
  const at::Tensor sum = at::full({1}, static_cast<double>(left), at::kDouble);
  state.sum_over_shards(sum);
  return sum.item<int64_t>();
}

// Returns the error if memory runs out.
std::optional<std::string> attempt(const State& state, const State::Work& work) try {
  if (state.attempt) return state.attempt(work);
  work();
  return std::nullopt;
} catch (const std::exception& error) {
  if (!is_lack_of_memory(error)) throw;
  return one_line(error);
}

}  // namespace

void work_in_parts(const State& state, bool works, const PartedWork& job) {
  if (!works && !state.sum_over_shards) return;
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
    const auto failure = attempt(state, [&] { state.with_model(works, work, parts * job.forwards); });
    const bool too_large = works && failure && std::min(part, round - done) == 1;
    TORCH_CHECK_WITH(OutOfMemoryError, !too_large, *failure);
    const int64_t before = left;
    left = agreed(state, works ? left - done : 0);
    if (left > before - round) part = (std::min(part, left) + 1) / 2;
  }
}

}  // namespace tutti
