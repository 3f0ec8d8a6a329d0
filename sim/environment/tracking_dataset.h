#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// Remembers the samples of each batch that it returned. Not thread-safe: used by the holder of the run token.
class TrackingDataset final : public Dataset {
 public:
  explicit TrackingDataset(DatasetPtr below) : below_(std::move(below)) {}

  int64_t size() const override { return below_->size(); }
  SampleSpec spec() const override { return below_->spec(); }
  Batch get(std::span<const int64_t> indices) const override {
    Batch batch = below_->get(indices);
    if (!indices.empty()) batches_[memory_of(batch)] = {indices.begin(), indices.end()};
    return batch;
  }
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return below_->order(seed, epoch, position, shuffle);
  }
  void scan() const override { below_->scan(); }
  uint64_t digest() const override { return below_->digest(); }

  // The samples of a batch that is still alive; -1 for each sample of an unknown batch.
  std::vector<int64_t> indices_of(const Batch& batch) const {
    if (batch.samples() == 0) return {};
    const auto found = batches_.find(memory_of(batch));
    return found == batches_.end() ? std::vector<int64_t>(batch.samples(), -1) : found->second;
  }

 private:
  static const void* memory_of(const Batch& batch) { return batch.leaves().front().second.const_data_ptr(); }

  DatasetPtr below_;
  mutable std::map<const void*, std::vector<int64_t>> batches_;  // by the address of the first leaf
};

}  // namespace tutti
