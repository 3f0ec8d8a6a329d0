#include "actors/compute/accumulation.h"

#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

Accumulation accumulation(const std::string& train, int64_t device_batch = 0) {
  const Setting recipe = recipe_of(
      "[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nbatch_size = 2\n"
      "[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ep'\n" +
      train);
  return Accumulation(TrainSettings::read(recipe).accumulation, device_batch);
}

Timestamp at_batch(int64_t batch) { return {.batch = batch}; }

TEST(AccumulationTest, NumberIsTheUsers) {
  Accumulation fixed = accumulation("grad_accum = 3\n");
  EXPECT_EQ(fixed.count(100), 3);
  EXPECT_FALSE(fixed.out_of_memory(at_batch(100), 64));
  EXPECT_EQ(fixed.count(100), 3);
}

TEST(AccumulationTest, ComposersWordForAutomaticIsTaken) {
  EXPECT_TRUE(accumulation("device_train_microbatch_size = 'auto'\n").automatic());
  EXPECT_THROW(accumulation("device_train_microbatch_size = 'auto'\ngrad_accum = 'auto'\n"), UserError);
}

TEST(AccumulationTest, NumbersByStepHoldFromTheirStepOn) {
  const Accumulation steps = accumulation("grad_accum = [[0, 1], [7, 2], [9, 1]]\n");
  std::vector<int> counts;
  for (int64_t step = 5; step < 11; ++step) counts.push_back(steps.count(step));
  EXPECT_EQ(counts, (std::vector<int>{1, 1, 2, 2, 1, 1}));
}

TEST(AccumulationTest, DoublesUntilOneSampleIsLeft) {
  Accumulation automatic = accumulation("grad_accum = 'auto'\n");
  std::vector<int> counts;
  do counts.push_back(automatic.count(0));
  while (automatic.out_of_memory(at_batch(0), 11));
  EXPECT_EQ(counts, (std::vector<int>{1, 2, 4, 8, 11}));
}

TEST(AccumulationTest, EveryDoublingMakesTheLargestPartSmaller) {
  for (int64_t largest = 1; largest < 70; ++largest) {
    Accumulation automatic = accumulation("grad_accum = 'auto'\n");
    int64_t part = largest + 1;
    do {
      const int64_t smaller = (largest + automatic.count(0) - 1) / automatic.count(0);
      EXPECT_LT(smaller, part) << largest;
      part = smaller;
    } while (automatic.out_of_memory(at_batch(0), largest));
    EXPECT_EQ(part, 1) << largest;
  }
}

TEST(AccumulationTest, ShortBatchOfSinglesCannotBeCutFurther) {
  Accumulation automatic = accumulation("grad_accum = 'auto'\n");
  automatic.restore({.count = 4, .unit = "ba"}, {});
  EXPECT_FALSE(automatic.out_of_memory(at_batch(0), 3));
  EXPECT_EQ(automatic.count(0), 4);
}

TEST(AccumulationTest, NeverGrowsBackUnlessAskedTo) {
  Accumulation automatic = accumulation("grad_accum = 'auto'\n");
  automatic.restore({.count = 4, .unit = "ba"}, {});
  for (int64_t batch = 1; batch < 1000; ++batch) EXPECT_FALSE(automatic.committed(at_batch(batch)));
}

// The batches at which fewer are tried, while 2 are too few for as long as `too_few` says.
std::vector<int64_t> tries(Accumulation& automatic, int64_t until,
                           const std::function<bool(int64_t)>& too_few) {
  std::vector<int64_t> found;
  for (int64_t batch = 0; batch < until; ++batch) {
    if (automatic.count(batch) <= 2 && too_few(batch)) automatic.out_of_memory(at_batch(batch), 64);
    if (automatic.committed(at_batch(batch + 1))) found.push_back(batch + 1);
  }
  return found;
}

TEST(AccumulationTest, WaitDoublesAfterATryThatFailed) {
  Accumulation automatic = accumulation("grad_accum = 'auto'\ngrad_accum_grow_interval = '10ba'\n");
  automatic.restore({.count = 4, .unit = "ba"}, {});
  EXPECT_EQ(tries(automatic, 160, [](int64_t) { return true; }), (std::vector<int64_t>{10, 30, 70, 150}));
}

TEST(AccumulationTest, GrowsBackToOneOnceMemorySuffices) {
  Accumulation automatic = accumulation("grad_accum = 'auto'\ngrad_accum_grow_interval = '10ba'\n");
  automatic.restore({.count = 4, .unit = "ba"}, {});
  const auto found = tries(automatic, 200, [](int64_t batch) { return batch < 35; });
  EXPECT_EQ(found, (std::vector<int64_t>{10, 30, 70, 110}));
  EXPECT_EQ(automatic.count(0), 1);
}

TEST(AccumulationTest, ResumesWhereItsStateWasTaken) {
  Accumulation one = accumulation("grad_accum = 'auto'\ngrad_accum_grow_interval = '3ba'\n");
  const auto too_few = [](int64_t batch) { return batch < 20; };
  one.restore({.count = 4, .unit = "ba"}, {});
  tries(one, 17, too_few);
  Accumulation other = accumulation("grad_accum = 'auto'\ngrad_accum_grow_interval = '3ba'\n");
  RunState state;
  state.accumulation = one.state();
  other.restore(RunState::from_json(state.to_json()).accumulation, {});
  EXPECT_EQ(other.state(), one.state());
  EXPECT_NE(one.state(), AccumulationState());
}

TEST(AccumulationTest, WaitInAnotherUnitBeginsWhereTheRunResumes) {
  Accumulation automatic = accumulation("grad_accum = 'auto'\ngrad_accum_grow_interval = '2ep'\n");
  Timestamp now = at_batch(96);
  now.epoch = 3;
  automatic.restore({.count = 4, .since = 90, .unit = "ba"}, now);
  now.epoch = 4;
  EXPECT_FALSE(automatic.committed(now));
  now.epoch = 5;
  EXPECT_TRUE(automatic.committed(now));
}

TEST(AccumulationTest, SizeOfAMicrobatchGivesTheirNumber) {
  const Accumulation sized = accumulation("device_train_microbatch_size = 12\n", 32);
  EXPECT_EQ(sized.count(0), 3);
  EXPECT_EQ(sized.microbatch_size(), 12);
  EXPECT_FALSE(sized.automatic());
}

}  // namespace
}  // namespace tutti
