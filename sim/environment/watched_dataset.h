#pragma once

#include <map>
#include <vector>

#include "data/dataset.h"

namespace tutti {

// A dataset that remembers which samples went into each batch that it made. Used under the run token.
class WatchedDataset final : public Dataset {
 public:
  explicit WatchedDataset(DatasetPtr below) : below_(std::move(below)) {}

  int64_t size() const override { return below_->size(); }
  SampleSpec spec() const override { return below_->spec(); }
  Batch get(std::span<const int64_t> indices) const override;
  int64_t order(uint64_t seed, int64_t epoch, int64_t position, bool shuffle) const override {
    return below_->order(seed, epoch, position, shuffle);
  }
  void scan() const override { below_->scan(); }
  uint64_t digest() const override { return below_->digest(); }

  // The samples of a batch that is still alive; -1 stands for each of one that was not made here.
  std::vector<int64_t> indices_of(const Batch& batch) const;

 private:
  DatasetPtr below_;
  mutable std::map<const void*, std::vector<int64_t>> batches_;  // by the memory of their first leaf
};

}  // namespace tutti
