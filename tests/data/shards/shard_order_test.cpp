#include "data/shards/shard_order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

namespace tutti {
namespace {

const std::vector<int64_t> kShardSamples = {7, 1, 30, 12, 5, 5, 9, 64, 2};

std::vector<int64_t> whole_order(const ShardOrder& order, uint64_t seed, int64_t epoch) {
  std::vector<int64_t> samples;
  for (int64_t i = 0; i < std::accumulate(kShardSamples.begin(), kShardSamples.end(), int64_t{0}); ++i)
    samples.push_back(order.sample(seed, epoch, i));
  return samples;
}

int64_t shard_of(int64_t sample) {
  int64_t shard = 0;
  for (const int64_t samples : kShardSamples) {
    if (sample < samples) return shard;
    sample -= samples;
    ++shard;
  }
  return -1;
}

TEST(ShardOrder, IsAPermutationOfAllSamples) {
  for (const int64_t block : {1, 10, 40, 100, 1000}) {
    const ShardOrder order(kShardSamples, block);
    for (int64_t epoch = 0; epoch < 8; ++epoch) {
      std::vector<int64_t> samples = whole_order(order, 3, epoch);
      std::ranges::sort(samples);
      for (std::size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(samples[i], static_cast<int64_t>(i));
    }
  }
}

TEST(ShardOrder, DependsOnSeedAndEpochAlone) {
  const ShardOrder order(kShardSamples, 40), other(kShardSamples, 40);
  const std::vector<int64_t> first = whole_order(order, 3, 0);
  EXPECT_NE(first, whole_order(order, 3, 1));
  EXPECT_NE(first, whole_order(order, 4, 0));
  for (int64_t epoch = 2; epoch < 9; ++epoch) order.sample(3, epoch, 0);  // more plans than are kept
  EXPECT_EQ(first, whole_order(order, 3, 0));
  EXPECT_EQ(first, whole_order(other, 3, 0));
}

TEST(ShardOrder, NeedsTheShardsOfOneBlockAtATime) {
  const int64_t block = 40;
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    const std::vector<int64_t> samples = whole_order(ShardOrder(kShardSamples, block), 3, epoch);
    // A shard is needed from its first sample to its last.
    for (std::size_t at = 0; at < samples.size(); ++at) {
      std::set<int64_t> before, needed;
      for (std::size_t i = 0; i <= at; ++i) before.insert(shard_of(samples[i]));
      for (std::size_t i = at; i < samples.size(); ++i)
        if (before.contains(shard_of(samples[i]))) needed.insert(shard_of(samples[i]));
      int64_t held = 0;
      for (const int64_t shard : needed) held += kShardSamples[static_cast<std::size_t>(shard)];
      ASSERT_LE(held, std::max<int64_t>(block, 64));
    }
  }
}

// Two shards fill a block.
TEST(ShardOrder, ABlockMayBeFull) {
  const ShardOrder order({5, 5}, 10);
  int changes = 0;
  for (int64_t epoch = 0; epoch < 5; ++epoch)
    for (int64_t i = 1; i < 10; ++i)
      changes += (order.sample(1, epoch, i) < 5) != (order.sample(1, epoch, i - 1) < 5);
  EXPECT_GT(changes, 5) << "one an epoch if the shards are not mixed";
}

TEST(ShardOrder, MixesSamplesOfShards) {
  const std::vector<int64_t> samples = whole_order(ShardOrder(kShardSamples, 1000), 3, 0);
  int changes = 0;
  for (std::size_t i = 1; i < samples.size(); ++i)
    changes += shard_of(samples[i]) != shard_of(samples[i - 1]);
  EXPECT_GT(changes, 50);
  EXPECT_EQ(ShardOrder(kShardSamples, 1000).most_samples(), 135);
  EXPECT_EQ(ShardOrder(kShardSamples, 10).most_samples(), 64);
}

}  // namespace
}  // namespace tutti
