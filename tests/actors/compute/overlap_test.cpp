#include <gtest/gtest.h>

#include <algorithm>

#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

// Sleeps stand for work, so the figures hold on a busy machine too.
constexpr double kMostGrowth = 1.05;

TEST(OverlapTest, LoadingFourFifthsOfAStepCostsNothing) {
  SleepingWorld world;
  const double alone = median(world.step_ms());
  world.loading = world.forward * 4 / 5;
  EXPECT_LT(median(world.step_ms()), kMostGrowth * alone);
}

TEST(OverlapTest, WritingForThreeStepsCostsNothing) {
  SleepingWorld world;
  world.checkpoint_every = 5;
  const double alone = median(world.step_ms());
  world.writing = world.forward * 3;
  const auto slow = world.step_ms();
  EXPECT_LT(median(slow), kMostGrowth * alone);
  EXPECT_LT(*std::max_element(slow.begin(), slow.end()), 2 * alone) << "a step waited for the disk";
}

TEST(OverlapTest, CheckpointsDoNotPileUpOnADiskSlowerThanTheirInterval) {
  SleepingWorld world;
  world.forward = std::chrono::milliseconds(1);
  world.checkpoint_every = 2;
  world.writing = std::chrono::milliseconds(20);
  EXPECT_EQ(world.run().most_unpublished, 1);
  world.writing = {};
  world.publishing = std::chrono::milliseconds(20);
  EXPECT_EQ(world.run().most_unpublished, 1);
}

TEST(OverlapTest, LoadingLongerThanAStepShows) {
  SleepingWorld world;
  const double alone = median(world.step_ms());
  world.loading = world.forward * 2;
  EXPECT_GT(median(world.step_ms()), 1.5 * alone);
}

}  // namespace
}  // namespace tutti
