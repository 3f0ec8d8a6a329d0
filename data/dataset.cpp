#include "data/dataset.h"

#include <algorithm>

#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/random.h"

namespace tutti {

int64_t Dataset::order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const {
  if (!shuffle) return position;
  const RandomKey draw = RandomKey(seed, "order").fold_in(static_cast<uint64_t>(epoch));
  return static_cast<int64_t>(
      Permutation(static_cast<uint64_t>(size()), draw)(static_cast<uint64_t>(position)));
}

uint64_t digest_of_samples(const Dataset& data) {
  constexpr int64_t kSamples = 16;
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < kSamples; ++i) samples.push_back(i * (data.size() - 1) / (kSamples - 1));
  auto digest = static_cast<uint64_t>(data.size());
  for (const auto& [name, values] : data.get(samples, {}).leaves())
    digest = XXH3_64bits_withSeed(values.const_data_ptr(), values.nbytes(), digest);
  return digest;
}

Sampler::Sampler(const Plan& plan)
    : plan_(plan),
      stride_(plan.per_rank_data ? plan.global_batch / plan.place.data_world : plan.global_batch) {
  TUTTI_ASSERT(plan.samples >= 0 && plan.global_batch > 0 && plan.place.data_world > 0, "an empty plan");
  TUTTI_ASSERT(plan.place.data_rank >= 0, "part " + std::to_string(plan.place.data_rank));
  TUTTI_ASSERT(!plan.per_rank_data || plan.global_batch % plan.place.data_world == 0,
               "the ranks do not divide the global batch");
  TUTTI_ASSERT(!plan.per_rank_data || !plan.place.has_grains, "grains of per-rank data");
}

int64_t Sampler::batches() const {
  const bool short_batch = plan_.samples % stride_ != 0 && !plan_.loading.drop_last;
  const int64_t all = plan_.samples / stride_ + (short_batch ? 1 : 0);
  const int64_t most = plan_.loading.subset_num_batches;
  return most < 0 ? all : std::min(all, most);
}

// Samples of a batch in this rank's order.
int64_t Sampler::batch_samples(int64_t batch) const {
  TUTTI_ASSERT(batch >= 0 && batch < batches(),
               "batch " + std::to_string(batch) + " of " + std::to_string(batches()));
  return std::min(stride_, plan_.samples - batch * stride_);
}

int64_t Sampler::global_samples(int64_t batch) const {
  return batch_samples(batch) * (plan_.per_rank_data ? plan_.place.data_world : 1);
}

int64_t Sampler::first_sample(int64_t batch) const {
  return part_of_rank(global_samples(batch), plan_.place).first;
}

std::vector<int64_t> Sampler::indices(const Dataset& dataset, int64_t epoch, int64_t batch) const {
  std::vector<int64_t> indices;
  for (const Portion& part : parts_of_rank(global_samples(batch), plan_.place)) {
    const int64_t first = batch * stride_ + (plan_.per_rank_data ? 0 : part.first);
    for (int64_t position = first; position < first + part.samples; ++position)
      indices.push_back(dataset.order(plan_.seed, epoch, position, plan_.loading.shuffle));
  }
  return indices;
}

}  // namespace tutti
