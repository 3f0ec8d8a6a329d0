#include "actors/messages/verdict.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

TEST(VerdictTest, TheSumOfTheRanksVectorsIsTheVerdictOfAll) {
  Verdict a;
  a.out_of_memory = 1;
  a.overflow = 1;
  a.samples = 32;
  a.flops = 4e9;
  a.loss_sum = 1.5;
  a.seconds = 7;
  a.memory_peak = {100};
  a.sums = {3, 5};
  Verdict b;
  b.stop = 1;
  b.samples = 31;
  b.flops = 3e9;
  b.loss_sum = 0.25;
  b.memory_peak = {300};
  b.sums = {4, 0};
  const Verdict sum = Verdict::decode(a.encode(0, 2) + b.encode(1, 2), 2);
  EXPECT_EQ(sum.out_of_memory, 1);
  EXPECT_EQ(sum.non_finite, 0);
  EXPECT_EQ(sum.overflow, 1);
  EXPECT_EQ(sum.stop, 1);
  EXPECT_EQ(sum.samples, 63);
  EXPECT_EQ(sum.flops, 7e9);
  EXPECT_EQ(sum.loss_sum, 1.75);
  EXPECT_EQ(sum.seconds, 7);
  EXPECT_THAT(sum.memory_peak, testing::ElementsAre(100, 300));
  EXPECT_THAT(sum.sums, testing::ElementsAre(7, 5));
}

}  // namespace
}  // namespace tutti
