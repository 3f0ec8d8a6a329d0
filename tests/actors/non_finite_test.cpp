#include <gtest/gtest.h>

#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

TEST(NonFiniteTest, OneBadBatchCostsOneStep) {
  SleepingWorld world;
  world.forward = std::chrono::milliseconds(1);
  world.steps = 10;
  const std::size_t gaps = world.step_ms().size();
  world.poisoned_step = 3;
  EXPECT_EQ(world.step_ms().size(), gaps - 1);
}

}  // namespace
}  // namespace tutti
