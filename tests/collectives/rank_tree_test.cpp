#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/ordered_sum.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<RankRange> within(int ranks, int begin, int end) {
  return subtrees_within({0, ranks}, [=](int rank) { return rank >= begin && rank < end; });
}

TEST(RankTreeTest, SplitsAtTheLargestPowerOfTwoBelowTheCount) {
  EXPECT_EQ(split_point({0, 2}), 1);
  EXPECT_EQ(split_point({0, 3}), 2);
  EXPECT_EQ(split_point({0, 4}), 2);
  EXPECT_EQ(split_point({0, 5}), 4);
  EXPECT_EQ(split_point({8, 16}), 12);
  EXPECT_EQ(split_point({4, 7}), 6);
}

TEST(RankTreeTest, AHostOfAllRanksIsOneSubtree) {
  EXPECT_THAT(within(7, 0, 7), ElementsAre(RankRange{0, 7}));
}

TEST(RankTreeTest, AnAlignedHostIsOneSubtree) {
  EXPECT_THAT(within(8, 4, 8), ElementsAre(RankRange{4, 8}));
  EXPECT_THAT(within(6, 4, 6), ElementsAre(RankRange{4, 6}));
}

TEST(RankTreeTest, AnUnalignedHostIsTheFewestSubtrees) {
  EXPECT_THAT(within(8, 1, 7),
              ElementsAre(RankRange{1, 2}, RankRange{2, 4}, RankRange{4, 6}, RankRange{6, 7}));
}

TEST(RankTreeTest, AHostOfEverySecondRankHasASubtreeEach) {
  const auto even = subtrees_within({0, 6}, [](int rank) { return rank % 2 == 0; });
  EXPECT_THAT(even, ElementsAre(RankRange{0, 1}, RankRange{2, 3}, RankRange{4, 5}));
}

TEST(RankTreeTest, NoRanksMakeNoSubtree) { EXPECT_THAT(within(4, 2, 2), IsEmpty()); }

}  // namespace
}  // namespace tutti
