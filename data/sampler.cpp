#include "data/sampler.h"

#include <algorithm>

#include "runtime/error.h"

namespace tutti {

Sampler::Sampler(const Plan& plan) : plan_(plan) {
  TUTTI_ASSERT(plan.samples >= 0 && plan.global_batch > 0 && plan.world > 0, "an empty plan");
  TUTTI_ASSERT(plan.rank >= 0 && plan.rank < plan.world, "rank " + std::to_string(plan.rank));
  TUTTI_ASSERT(plan.global_batch % plan.world == 0, "the ranks do not divide the global batch");
}

int64_t Sampler::batches() const {
  const int64_t whole = plan_.samples / plan_.global_batch;
  const bool short_batch = plan_.samples % plan_.global_batch != 0 && !plan_.drop_last;
  const int64_t all = whole + (short_batch ? 1 : 0);
  return plan_.most_batches < 0 ? all : std::min(all, plan_.most_batches);
}

int64_t Sampler::global_samples(int64_t batch) const {
  TUTTI_ASSERT(batch >= 0 && batch < batches(),
               "batch " + std::to_string(batch) + " of " + std::to_string(batches()));
  return std::min(plan_.global_batch, plan_.samples - batch * plan_.global_batch);
}

std::vector<int64_t> Sampler::indices(const Dataset& dataset, int64_t epoch, int64_t batch) const {
  const int64_t all = global_samples(batch), each = all / plan_.world, rest = all % plan_.world;
  const int64_t first = batch * plan_.global_batch + plan_.rank * each + std::min<int64_t>(plan_.rank, rest);
  std::vector<int64_t> indices(static_cast<size_t>(each + (plan_.rank < rest ? 1 : 0)));
  for (size_t i = 0; i < indices.size(); ++i) {
    indices[i] = dataset.order(plan_.seed, epoch, first + static_cast<int64_t>(i), plan_.shuffle);
  }
  return indices;
}

}  // namespace tutti
