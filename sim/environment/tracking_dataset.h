#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "data/dataset.h"
#include "data/readers/transformed_dataset.h"

namespace tutti {

// Remembers the samples of each returned batch. Not thread-safe: used by the holder of the run token.
class TrackingDataset final : public Dataset {
 public:
  explicit TrackingDataset(DatasetPtr below)
      : TrackingDataset(std::move(below), std::make_shared<Batches>()) {}

  int64_t size() const override { return below_->size(); }
  SampleSpec spec() const override { return below_->spec(); }
  Batch get(std::span<const int64_t> indices, const Epoch& epoch) const override {
    Batch batch = below_->get(indices, epoch);
    if (!indices.empty()) (*batches_)[memory_of(batch)] = {indices.begin(), indices.end()};
    return batch;
  }
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return below_->order(seed, epoch, position, shuffle);
  }
  void scan() const override { below_->scan(); }
  uint64_t digest() const override { return below_->digest(); }
  // Remembers in the same place.
  DatasetPtr with(const Transforms& added) const override {
    return DatasetPtr(new TrackingDataset(with_transforms(below_, added), batches_));
  }

  // The samples of a batch that is still alive; -1 for each sample of an unknown batch.
  std::vector<int64_t> indices_of(const Batch& batch) const {
    if (batch.samples() == 0) return {};
    const auto samples = batches_->find(memory_of(batch));
    return samples == batches_->end() ? std::vector<int64_t>(batch.samples(), -1) : samples->second;
  }

 private:
  using Batches = std::map<const void*, std::vector<int64_t>>;  // samples by the address of the first leaf

  TrackingDataset(DatasetPtr below, std::shared_ptr<Batches> batches)
      : below_(std::move(below)), batches_(std::move(batches)) {}

  static const void* memory_of(const Batch& batch) { return batch.leaves().front().second.const_data_ptr(); }

  DatasetPtr below_;
  std::shared_ptr<Batches> batches_;
};

}  // namespace tutti
