#include "actors/messages/verdict.h"

#include <ATen/TensorOperators.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

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

// 1e17 + 1 - 1e17 is 0 in this order alone.
TEST(VerdictTest, NumbersOfGrainsAreAddedInTheirOrder) {
  const std::vector<std::vector<double>> rows{
      {1e17, 3, 10, 1}, {1, 4, 20, 2}, {-1e17, 5, 30, 3}, {0.5, 0, 0, 4}};
  const auto decoded = [&](const std::vector<int>& rank_of_grain) {
    at::Tensor sum;
    for (int rank = 0; rank < 2; ++rank) {
      Verdict mine;
      mine.loss_sum = 77;  // not used
      mine.sums = {88};
      mine.grains.assign(16, 0.0);
      for (std::size_t grain = 0; grain < 4; ++grain)
        if (rank_of_grain[grain] == rank)
          std::ranges::copy(rows[grain], mine.grains.begin() + static_cast<std::ptrdiff_t>(4 * grain));
      const at::Tensor vector = mine.encode(rank, 2);
      EXPECT_EQ(vector.numel(), Verdict::numbers(2, 1, 4));
      sum = sum.defined() ? sum + vector : vector;
    }
    return Verdict::decode(sum, 2, 4);
  };
  for (const std::vector<int>& ranks :
       std::vector<std::vector<int>>{{0, 0, 1, 1}, {0, 1, 0, 1}, {1, 1, 1, 1}}) {
    const Verdict all = decoded(ranks);
    EXPECT_EQ(all.loss_sum, 0.5);
    EXPECT_EQ(all.loss_weight, 12);
    EXPECT_EQ(all.flops, 60);
    EXPECT_THAT(all.sums, testing::ElementsAre(10));
  }
}

}  // namespace
}  // namespace tutti
