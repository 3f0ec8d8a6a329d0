#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace tutti {

// An order of samples that needs few shards at a time, as Streaming's py1br: an epoch draws an order of the
// shards, cuts it into windows of whole shards, of about `block` samples each, and shuffles the samples of
// each window. Thread-safe; a lookup takes O(log shards), a new epoch O(shards).
class ShardOrder {
 public:
  ShardOrder(std::vector<int64_t> samples_of_shards, int64_t block);

  // The index of the sample at `position` of an epoch; over all positions, each sample once.
  int64_t sample(uint64_t seed, int64_t epoch, int64_t position) const;

  // The most samples of a window, and the most shards.
  int64_t most_samples() const { return most_samples_; }

 private:
  struct Plan;
  std::shared_ptr<const Plan> plan(uint64_t seed, int64_t epoch) const;

  std::vector<int64_t> samples_;
  std::vector<int64_t> firsts_;  // the first sample of each shard
  int64_t block_;
  int64_t most_samples_ = 0;
  mutable std::mutex mutex_;
  mutable std::vector<std::shared_ptr<const Plan>> plans_;  // those used last
};

}  // namespace tutti
