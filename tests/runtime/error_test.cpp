#include "runtime/error.h"

#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

TEST(ErrorTest, PositionWithoutALineIsTheFile) {
  EXPECT_EQ((Position{"digits.toml", 12}).text(), "digits.toml:12");
  EXPECT_EQ((Position{"digits.toml", 0}).text(), "digits.toml");
}

TEST(ErrorTest, UserErrorBeginsWithItsPosition) {
  EXPECT_STREQ(UserError({"digits.toml", 3}, "lr = -1").what(), "digits.toml:3: lr = -1");
  EXPECT_STREQ(UserError(Position{}, "lr = -1").what(), "lr = -1");
}

TEST(ErrorTest, EditDistanceCountsInsertionsDeletionsAndSubstitutions) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("flaw", "lawn"), 2);
}

TEST(ErrorTest, NearestNameIsTheClosestOrNothing) {
  const std::vector<std::string> names = {"momentum", "weight_decay", "lr"};
  EXPECT_EQ(nearest_name("momentun", names), "momentum");
  EXPECT_EQ(nearest_name("wieght_decay", names), "weight_decay");
  EXPECT_EQ(nearest_name("dropout", names), "");
}

TEST(ErrorTest, FailedAssertionSaysWhatAndWhere) {
  EXPECT_DEATH(TUTTI_ASSERT(1 + 1 == 3, "arithmetic holds"),
               "error_test.cpp:.*1 \\+ 1 == 3 \\(arithmetic holds\\)");
}

TEST(ErrorTest, AssertionsReasonIsEvaluatedOnlyWhenItFails) {
  int evaluated = 0;
  TUTTI_ASSERT(true, std::to_string(++evaluated));
  EXPECT_EQ(evaluated, 0);
}

TEST(RankMessage, NamesTheRankOnce) {
  EXPECT_EQ(rank_message(1, "the disk is full"), "rank 1: the disk is full");
  EXPECT_EQ(rank_message(1, "rank 1 compute: shapes differ"), "rank 1 compute: shapes differ");
  EXPECT_EQ(rank_message(1, "rank 10 hangs"), "rank 1: rank 10 hangs");
}

}  // namespace
}  // namespace tutti
