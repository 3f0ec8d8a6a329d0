#include "collectives/cut.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collectives/reference_cut.h"

namespace tutti {
namespace {

using testing::ElementsAre;

MATCHER_P3(IsRun, whole, part, count, "") {
  return arg.whole == whole && arg.part == part && arg.count == count;
}

TEST(CutTest, APartHasItsRangesInTheirOrder) {
  const Cut cut({{{10, 14}, {2, 5}}, {}, {{20, 21}}});
  EXPECT_EQ(cut.ranks(), 3);
  EXPECT_EQ(cut.size(), 8);
  EXPECT_EQ(cut.extent(), 21);
  EXPECT_EQ(cut.largest_part(), 7);
  EXPECT_THAT(cut.runs(0), ElementsAre(IsRun(10, 0, 4), IsRun(2, 4, 3)));
  EXPECT_EQ(cut.part_size(1), 0);
  EXPECT_EQ(cut.packed_begin(2), 7);
  EXPECT_THAT(cut.runs(2), ElementsAre(IsRun(20, 0, 1)));
}

TEST(CutTest, PiecesOfAPartAreRunsOfTheWhole) {
  const Cut cut({{{10, 14}, {2, 5}, {30, 40}}});
  EXPECT_THAT(cut.runs(0, 0, 4), ElementsAre(IsRun(10, 0, 4)));
  EXPECT_THAT(cut.runs(0, 1, 8), ElementsAre(IsRun(11, 0, 3), IsRun(2, 3, 3), IsRun(30, 6, 2)));
  EXPECT_THAT(cut.runs(0, 16, 1), ElementsAre(IsRun(39, 0, 1)));
  EXPECT_THAT(cut.runs(0, 4, 0), ElementsAre());
}

TEST(CutTest, NeighbouringRangesAreOneRunAndTheSameCut) {
  const Cut cut({{{0, 3}, {3, 3}, {3, 8}}, {{8, 9}}});
  EXPECT_THAT(cut.runs(0), ElementsAre(IsRun(0, 0, 8)));
  EXPECT_EQ(cut.hash(), Cut({{{0, 8}}, {{8, 9}}}).hash());
}

TEST(CutTest, DifferentCutsHaveDifferentHashes) {
  const auto hash = Cut({{{0, 4}}, {{4, 8}}}).hash();
  EXPECT_NE(hash, Cut({{{4, 8}}, {{0, 4}}}).hash());
  EXPECT_NE(hash, Cut({{{0, 4}, {4, 8}}, {}}).hash());
  EXPECT_NE(hash, Cut({{{0, 4}}, {{5, 9}}}).hash());
  EXPECT_NE(hash, Cut({{{0, 4}}, {{4, 8}}, {}}).hash());
}

TEST(CutTest, KnowsIfPartsLieInRankOrder) {
  EXPECT_TRUE(Cut::even(3, 5)->is_even());
  EXPECT_TRUE(Cut({{{0, 4}}, {}, {{4, 9}}}).is_packed());
  EXPECT_FALSE(Cut({{{0, 4}}, {}, {{4, 9}}}).is_even());
  EXPECT_FALSE(Cut({{{0, 4}}, {{5, 9}}}).is_packed());
  EXPECT_FALSE(Cut({{{4, 8}}, {{0, 4}}}).is_packed());
  EXPECT_FALSE(Cut({{{0, 2}, {4, 6}}, {{6, 10}}}).is_packed());
}

TEST(CutTest, NoElementIsInTwoRanges) {
  EXPECT_DEATH(Cut({{{0, 4}}, {{3, 5}}}), "gives element 3 away twice");
  EXPECT_DEATH(Cut({{{0, 4}, {2, 3}}}), "gives element 2 away twice");
  EXPECT_DEATH(Cut({{{4, 3}}}), "no range");
  EXPECT_DEATH(Cut({{{-1, 3}}}), "no range");
}

}  // namespace
}  // namespace tutti
