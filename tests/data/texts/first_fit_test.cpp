#include "data/texts/first_fit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace tutti {
namespace {

using testing::ElementsAre;

std::vector<int64_t> samples_of(FirstFit& fit, const std::vector<int64_t>& lengths) {
  std::vector<int64_t> samples;
  for (const int64_t length : lengths) samples.push_back(fit.place(length).sample);
  return samples;
}

TEST(FirstFit, APieceGoesIntoTheFirstSampleWithRoomForIt) {
  FirstFit fit(10, 8);
  EXPECT_THAT(samples_of(fit, {6, 6, 4, 3, 1, 1, 10}), ElementsAre(0, 1, 0, 1, 1, 2, 3));
  EXPECT_EQ(fit.place(9).begin, 1);
  EXPECT_EQ(fit.begun(), 4);
}

TEST(FirstFit, OnlyTheSamplesBegunLastAreOpen) {
  FirstFit fit(10, 2);
  EXPECT_THAT(samples_of(fit, {9, 9, 9, 1}), ElementsAre(0, 1, 2, 1));
  EXPECT_TRUE(fit.is_complete(0)) << "no longer open";
  EXPECT_TRUE(fit.is_complete(1)) << "full";
  EXPECT_FALSE(fit.is_complete(2));
}

}  // namespace
}  // namespace tutti
