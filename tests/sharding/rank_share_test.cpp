#include "sharding/rank_share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "data/portions.h"

namespace tutti {
namespace {

using enum ShardingStrategy;

RankTopology place(ShardingStrategy strategy, int rank, int world, int grains) {
  ShardingSettings settings;
  settings.strategy = strategy;
  settings.shard_size = 2;
  return topology_of(settings, rank, world, grains);
}

std::vector<Portion> parts(ShardingStrategy strategy, int rank, int world, int grains, int64_t samples) {
  return parts_of_rank(samples, place(strategy, rank, world, grains));
}

TEST(Grains, AreEachOnOneRank) {
  for (const ShardingStrategy strategy : {kNone, kOptimizer, kGradients, kFull})
    for (const int grains : {1, 2, 8, 32})
      for (int world = 1; world <= 9; ++world) {
        std::vector<int> seen(static_cast<std::size_t>(grains));
        for (int rank = 0; rank < world; ++rank)
          for (const Portion& part : parts(strategy, rank, world, grains, 100))
            if (part.index < grains) ++seen[static_cast<std::size_t>(part.index)];
        EXPECT_THAT(seen, testing::Each(1)) << world << " ranks, " << grains << " grains";
      }
}

TEST(Grains, HaveTheSameSamplesOnAnyRank) {
  std::vector<Portion> alone = parts(kNone, 0, 1, 8, 21);
  EXPECT_EQ(alone[4], (Portion{4, 12, 3, false}));
  EXPECT_EQ(alone[7], (Portion{7, 19, 2, true}));
  for (const ShardingStrategy strategy : {kNone, kFull})
    for (const int world : {2, 3, 4, 8})
      for (int rank = 0; rank < world; ++rank)
        for (const Portion& part : parts(strategy, rank, world, 8, 21))
          if (part.index < 8) EXPECT_EQ(part, alone[static_cast<std::size_t>(part.index)]);
}

// Where ranks add first, the grains of a round are neighbours; else those of a rank.
TEST(Grains, OfARankAreNeighboursOrAStrideApart) {
  const auto indices = [](ShardingStrategy strategy, int rank) {
    std::vector<int64_t> all;
    for (const Portion& part : parts(strategy, rank, 2, 8, 80)) all.push_back(part.index);
    return all;
  };
  EXPECT_THAT(indices(kOptimizer, 1), testing::ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(indices(kFull, 1), testing::ElementsAre(1, 3, 5, 7));
}

TEST(Grains, AreComputedByAPowerOfTwoOfRanks) {
  for (const int rank : {4, 5, 6})
    for (const Portion& part : parts(kNone, rank, 7, 8, 80)) EXPECT_EQ(part.samples, 0);
  EXPECT_EQ(parts(kNone, 3, 7, 8, 80).size(), 2U);
  EXPECT_EQ(parts(kNone, 4, 16, 4, 80)[0].samples, 0) << "more ranks than grains";
}

TEST(Grains, AreLeftToOtherRunsOtherwise) {
  const RankTopology plain = place(kNone, 2, 3, 0);
  EXPECT_FALSE(plain.has_grains);
  EXPECT_EQ(plain.data_world, 3);
  EXPECT_EQ(parts_of_rank(10, plain), (std::vector<Portion>{{2, 7, 3, true}}));
}

}  // namespace
}  // namespace tutti
