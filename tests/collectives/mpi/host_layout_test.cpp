#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/mpi/endpoint.h"

namespace tutti {
namespace {

using testing::ElementsAre;

TEST(HostLayoutTest, NumbersHostsByTheirLowestRank) {
  const HostLayout layout({9, 9, 4, 4}, 2);
  EXPECT_EQ(layout.hosts(), 2);
  EXPECT_EQ(layout.host(), 1);
  EXPECT_THAT(layout.ranks_of(0), ElementsAre(0, 1));
  EXPECT_THAT(layout.neighbours(), ElementsAre(2, 3));
  EXPECT_EQ(layout.local_of(3), 1);
}

TEST(HostLayoutTest, AnOwnerSpeaksForItselfAtHome) {
  const HostLayout layout({0, 0, 1, 1}, 0);
  EXPECT_EQ(layout.delegate(0, 1), 1);
  EXPECT_EQ(layout.delegate(1, 3), 3);
}

TEST(HostLayoutTest, DelegatesSpreadTheWorkOverAHostWhateverThePlacement) {
  const HostLayout by_slot({0, 0, 1, 1}, 0);
  EXPECT_EQ(by_slot.delegate(0, 2), 0);
  EXPECT_EQ(by_slot.delegate(0, 3), 1);
  const HostLayout by_node({0, 1, 0, 1}, 0);
  EXPECT_EQ(by_node.delegate(0, 1), 0);
  EXPECT_EQ(by_node.delegate(0, 3), 2);
}

TEST(HostLayoutTest, ASmallHostSpeaksForManyOwnersByItsFewRanks) {
  const HostLayout layout({0, 0, 0, 1}, 3);
  for (int owner = 0; owner < 3; ++owner) EXPECT_EQ(layout.delegate(1, owner), 3);
}

TEST(HostLayoutTest, KnowsWhatEachHostCanSumAlone) {
  const HostLayout layout({0, 0, 0, 1}, 0);
  EXPECT_THAT(layout.subtrees(0), ElementsAre(RankRange{0, 2}, RankRange{2, 3}));
  EXPECT_THAT(layout.subtrees(1), ElementsAre(RankRange{3, 4}));
}

}  // namespace
}  // namespace tutti
