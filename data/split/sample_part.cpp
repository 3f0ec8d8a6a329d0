#include "data/split/sample_part.h"

#include <algorithm>
#include <utility>

#include "data/readers/transformed_dataset.h"
#include "runtime/hashes.h"

namespace tutti {
namespace {

constexpr std::size_t kKeptOrders = 2;  // batches that are read ahead may be of the next epoch

}  // namespace

SamplePart::SamplePart(DatasetPtr whole, Options options)
    : whole_(std::move(whole)), options_(std::move(options)) {}

Batch SamplePart::get(std::span<const int64_t> indices, const Epoch& epoch) const {
  std::vector<int64_t> samples;
  samples.reserve(indices.size());
  for (const int64_t index : indices) samples.push_back(options_.samples[static_cast<std::size_t>(index)]);
  return whole_->get(samples, epoch);
}

int64_t SamplePart::order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const {
  if (!shuffle || !options_.follows_order) return Dataset::order(seed, epoch, position, shuffle);
  return order_of(seed, epoch)->samples[static_cast<std::size_t>(position)];
}

std::shared_ptr<const SamplePart::EpochOrder> SamplePart::order_of(uint64_t seed, int64_t epoch) const {
  const std::lock_guard lock(mutex_);
  for (const auto& order : orders_)
    if (order->seed == seed && order->epoch == epoch) return order;
  auto order = std::make_shared<EpochOrder>(EpochOrder{seed, epoch, {}});
  const auto& mine = options_.samples;
  for (int64_t position = 0; position < whole_->size(); ++position) {
    const int64_t sample = whole_->order(seed, epoch, position, /*shuffle=*/true);
    const auto place = std::ranges::lower_bound(mine, sample);
    if (place != mine.end() && *place == sample) order->samples.push_back(place - mine.begin());
  }
  if (orders_.size() == kKeptOrders) orders_.erase(orders_.begin());
  return orders_.emplace_back(std::move(order));
}

void SamplePart::scan() const {
  if (options_.speaks_for_whole) whole_->scan();
}

uint64_t SamplePart::digest() const {
  const auto& samples = options_.samples;
  return XXH3_64bits_withSeed(samples.data(), samples.size() * sizeof(samples[0]), whole_->digest());
}

std::string SamplePart::advice() const {
  const std::string whole_advice = options_.speaks_for_whole ? whole_->advice() : "";
  return options_.note + (options_.note.empty() || whole_advice.empty() ? "" : "\n") + whole_advice;
}

std::string SamplePart::replaced() const { return options_.speaks_for_whole ? whole_->replaced() : ""; }

DatasetPtr SamplePart::with(const Transforms& added) const {
  return std::make_shared<const SamplePart>(with_transforms(whole_, added), options_);
}

}  // namespace tutti
