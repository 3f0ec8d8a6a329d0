#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "data/dataset.h"

namespace tutti {
namespace {

// `size` samples that are never read.
class NumberedSamples final : public Dataset {
 public:
  explicit NumberedSamples(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  SampleSpec spec() const override { return {}; }
  Batch get(std::span<const int64_t>, const Epoch&) const override { return {}; }
  uint64_t digest() const override { return 0; }

 private:
  int64_t size_;
};

Sampler sampler_of(int64_t samples, int64_t global_batch, int rank, int world, bool shuffle = true,
                   bool drop_last = false, uint64_t seed = 17) {
  return Sampler({.samples = samples,
                  .global_batch = global_batch,
                  .place = {.data_rank = rank, .data_world = world},
                  .seed = seed,
                  .loading = {.shuffle = shuffle, .drop_last = drop_last}});
}

// The samples of a batch on all ranks, in rank order.
std::vector<int64_t> global_batch_of(const Dataset& data, int64_t global_batch, int world, int64_t epoch,
                                     int64_t batch) {
  std::vector<int64_t> all;
  for (int rank = 0; rank < world; ++rank) {
    const auto part = sampler_of(data.size(), global_batch, rank, world).indices(data, epoch, batch);
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

TEST(Sampler, AnyWorldSeesTheSameGlobalBatches) {
  const NumberedSamples data(1437);
  const Sampler alone = sampler_of(1437, 96, 0, 1);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t batch = 0; batch < alone.batches(); ++batch) {
      const auto want = alone.indices(data, epoch, batch);
      for (const int world : {2, 3, 4, 5, 7, 8})
        EXPECT_EQ(global_batch_of(data, 96, world, epoch, batch), want) << world;
    }
  }
}

TEST(Sampler, EverySampleIsSeenOnceAnEpoch) {
  const NumberedSamples data(1437);
  for (const int world : {1, 2, 3, 4, 5, 8}) {
    std::vector<int64_t> seen;
    for (int64_t batch = 0; batch < sampler_of(1437, 96, 0, world).batches(); ++batch) {
      const auto part = global_batch_of(data, 96, world, 3, batch);
      seen.insert(seen.end(), part.begin(), part.end());
    }
    EXPECT_EQ(seen.size(), 1437u);
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), 1437u) << world;
    EXPECT_EQ(*std::min_element(seen.begin(), seen.end()), 0);
    EXPECT_EQ(*std::max_element(seen.begin(), seen.end()), 1436);
  }
}

TEST(Sampler, ShortLastBatchIsSpreadOverTheLowerRanks) {
  const NumberedSamples data(10);
  EXPECT_EQ(sampler_of(10, 8, 0, 4).batches(), 2);
  EXPECT_EQ(sampler_of(10, 8, 0, 4).global_samples(0), 8);
  EXPECT_EQ(sampler_of(10, 8, 0, 4).global_samples(1), 2);
  const std::vector<std::vector<int64_t>> want = {{8}, {9}, {}, {}};
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(sampler_of(10, 8, rank, 4, false).indices(data, 0, 1), want[static_cast<size_t>(rank)]) << rank;
  }
}

TEST(Sampler, BatchThatTheRanksDoNotDivideIsSpreadOverTheLowerOnes) {
  const NumberedSamples data(10);
  const std::vector<std::vector<int64_t>> want = {{5, 6}, {7, 8}, {9}};
  for (int rank = 0; rank < 3; ++rank)
    EXPECT_EQ(sampler_of(10, 5, rank, 3, false).indices(data, 0, 1), want[static_cast<size_t>(rank)]) << rank;
  EXPECT_EQ(largest_part(5, 3), 2);
}

TEST(Sampler, ARanksSamplesFollowThoseOfLowerRanks) {
  const NumberedSamples data(10);
  for (const bool per_rank : {false, true}) {
    int64_t place = 0;
    for (int rank = 0; rank < 3; ++rank) {
      const Sampler sampler({.samples = 10,
                             .global_batch = per_rank ? 6 : 5,
                             .place = {.data_rank = rank, .data_world = 3},
                             .per_rank_data = per_rank});
      EXPECT_EQ(sampler.first_sample(1), place) << rank;
      place += static_cast<int64_t>(sampler.indices(data, 0, 1).size());
    }
    EXPECT_EQ(place, per_rank ? 6 : 5);
  }
}

TEST(Sampler, DropLastLeavesTheShortBatchOut) {
  EXPECT_EQ(sampler_of(10, 8, 0, 4, true, true).batches(), 1);
  EXPECT_EQ(sampler_of(16, 8, 0, 4, true, true).batches(), 2);
  EXPECT_EQ(sampler_of(16, 8, 0, 4, true, false).batches(), 2);
  EXPECT_EQ(sampler_of(7, 8, 0, 4, true, true).batches(), 0);
}

TEST(Sampler, UnshuffledIsInOrder) {
  const NumberedSamples data(12);
  EXPECT_EQ(sampler_of(12, 4, 1, 2, false).indices(data, 5, 2), (std::vector<int64_t>{10, 11}));
}

Sampler own_sampler(int64_t samples, int64_t global_batch, int rank, int world, bool drop_last = false) {
  return Sampler({.samples = samples,
                  .global_batch = global_batch,
                  .place = {.data_rank = rank, .data_world = world},
                  .seed = 17,
                  .per_rank_data = true,
                  .loading = {.shuffle = true, .drop_last = drop_last}});
}

TEST(Sampler, WithDataOfItsOwnARankGoesThroughAllOfIt) {
  const NumberedSamples data(10);
  for (int rank = 0; rank < 3; ++rank) {
    const Sampler sampler = own_sampler(10, 12, rank, 3);  // 4 at a time
    ASSERT_EQ(sampler.batches(), 3);
    std::multiset<int64_t> seen;
    for (int64_t batch = 0; batch < 3; ++batch) {
      const auto part = sampler.indices(data, 1, batch);
      EXPECT_EQ(static_cast<int64_t>(part.size()) * 3, sampler.global_samples(batch));
      seen.insert(part.begin(), part.end());
    }
    EXPECT_EQ(seen, (std::multiset<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})) << rank;
  }
  EXPECT_EQ(own_sampler(10, 12, 0, 3).global_samples(2), 6);
  EXPECT_EQ(own_sampler(10, 12, 0, 3, true).batches(), 2);
}

// The shortest dataset decides the length of an epoch; ranks with longer data see all of it in time.
TEST(Sampler, AnEpochMayBeShorterThanTheData) {
  const NumberedSamples data(10);
  std::set<int64_t> seen;
  for (int64_t epoch = 0; epoch < 40; ++epoch)
    for (const int64_t index : own_sampler(4, 4, 0, 2).indices(data, epoch, 0)) seen.insert(index);
  EXPECT_EQ(seen.size(), 10u);
}

TEST(Sampler, OrderDiffersByEpochAndSeed) {
  const NumberedSamples data(1000);
  const auto first = sampler_of(1000, 100, 0, 1).indices(data, 0, 0);
  EXPECT_EQ(sampler_of(1000, 100, 0, 1).indices(data, 0, 0), first);
  EXPECT_NE(sampler_of(1000, 100, 0, 1).indices(data, 1, 0), first);
  EXPECT_NE(sampler_of(1000, 100, 0, 1, true, false, 18).indices(data, 0, 0), first);
}

// A sampler has no state: the last batch of a trillion samples costs what the first one does.
TEST(Sampler, StartsAnywhereAtOnce) {
  const int64_t samples = int64_t{1} << 40;
  const NumberedSamples data(samples);
  const Sampler sampler = sampler_of(samples, 64, 3, 4);
  const auto indices = sampler.indices(data, 1'000'000, sampler.batches() - 1);
  EXPECT_EQ(indices.size(), 16u);
  for (const int64_t index : indices) EXPECT_TRUE(index >= 0 && index < samples);
}

// Far from any order: the mean distance of neighbours in a random permutation of n is (n + 1) / 3.
TEST(Sampler, ShuffleMixesFarAndWide) {
  const NumberedSamples data(10'000);
  const auto order = sampler_of(10'000, 10'000, 0, 1).indices(data, 0, 0);
  double distance = 0;
  for (size_t i = 1; i < order.size(); ++i)
    distance += static_cast<double>(std::abs(order[i] - order[i - 1]));
  EXPECT_NEAR(distance / 9999, 3333.7, 150);
}

}  // namespace
}  // namespace tutti
