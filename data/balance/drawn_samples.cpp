#include "data/balance/drawn_samples.h"

#include <ATen/ops/cat.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "data/readers/transformed_dataset.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/random.h"

namespace tutti {

DrawnSamples::DrawnSamples(DatasetPtr data, std::vector<double> weights, bool varies)
    : data_(std::move(data)), weights_(std::move(weights)), sums_(weights_.size()), varies_(varies) {
  std::partial_sum(weights_.begin(), weights_.end(), sums_.begin());
  TUTTI_ASSERT(std::ssize(weights_) == data_->size() && sums_.back() > 0, "weights of other samples");
}

int64_t DrawnSamples::order(uint64_t seed, int64_t epoch, int64_t position, bool) const {
  const RandomKey key = RandomKey(seed, "drawn samples").fold_in(static_cast<uint64_t>(epoch));
  const double at = key.uniform(static_cast<uint64_t>(position)) * sums_.back();
  auto place = std::ranges::upper_bound(sums_, at);  // whose weight is above 0
  if (place == sums_.end()) place = std::ranges::lower_bound(sums_, sums_.back());
  const int64_t sample = place - sums_.begin();
  return varies_ ? position * size() + sample : sample;
}

Batch DrawnSamples::get(std::span<const int64_t> indices, const Epoch& epoch) const {
  if (!varies_ || indices.empty()) return data_->get(indices, epoch);
  std::vector<Batch> samples;
  for (const int64_t index : indices) {
    const int64_t sample = index % size();
    const RandomKey key = RandomKey(epoch.seed, "drawn again").fold_in(static_cast<uint64_t>(index / size()));
    samples.push_back(data_->get({&sample, 1}, {key.bits(), epoch.number}));
  }
  TensorTree::Children arrays;
  for (const auto& [name, first] : samples.front().leaves()) {
    std::vector<at::Tensor> rows;
    for (const Batch& sample : samples) rows.push_back(sample.at(name).tensor());
    arrays.emplace_back(name, at::cat(rows));
  }
  return Batch(std::move(arrays));
}

uint64_t DrawnSamples::digest() const {
  return XXH3_64bits_withSeed(weights_.data(), weights_.size() * sizeof(weights_[0]), data_->digest());
}

DatasetPtr DrawnSamples::with(const Transforms& added) const {
  return std::make_shared<const DrawnSamples>(with_transforms(data_, added), weights_, /*varies=*/true);
}

}  // namespace tutti
