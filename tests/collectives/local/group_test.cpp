#include "collectives/local/group.h"

#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <thread>

#include "collectives/local/world.h"
#include "tests/collectives/reference_sum.h"
#include "tests/runtime/watchdog.h"

namespace tutti {
namespace {

using testing::HasSubstr;

void wait(const WorkPtr& work) {
  while (!work->done()) sched_yield();
}

std::vector<std::unique_ptr<Group>> groups_of(int size) {
  const auto fabric = LocalFabric::make(size);
  std::vector<std::unique_ptr<Group>> groups;
  for (int rank = 0; rank < size; ++rank) groups.push_back(fabric->group(rank));
  return groups;
}

TEST(LocalGroupTest, AloneEverythingIsDoneAtOnceAndNothingMoves) {
  const auto group = LocalFabric::make(1)->group(0);
  const at::Tensor tensor = numbers(at::kFloat, 100, 0);
  const void* const memory = tensor.const_data_ptr();
  EXPECT_TRUE(group->all_reduce(tensor, "sum")->done());
  EXPECT_TRUE(group->broadcast(tensor, 0, "copy")->done());
  EXPECT_TRUE(group->barrier("end")->done());
  EXPECT_TRUE(group->reduce_scatter(tensor, tensor, "in place")->done());
  EXPECT_TRUE(same_bits(tensor, numbers(at::kFloat, 100, 0)));
  EXPECT_EQ(tensor.const_data_ptr(), memory);
  const at::Tensor out = at::zeros({100}, at::kFloat);
  EXPECT_TRUE(group->all_gather(tensor, out, "gather")->done());
  EXPECT_TRUE(same_bits(out, tensor));
}

TEST(LocalGroupTest, ACollectiveIsPendingUntilTheLastRankPosts) {
  const auto groups = groups_of(2);
  const at::Tensor a = numbers(at::kFloat, 10, 0);
  const at::Tensor b = numbers(at::kFloat, 10, 1);
  const at::Tensor expected = reference_sum({a, b});
  const WorkPtr first = groups[0]->all_reduce(a, "sum");
  EXPECT_FALSE(first->done());
  EXPECT_TRUE(groups[1]->all_reduce(b, "sum")->done());
  EXPECT_TRUE(first->done());
  EXPECT_TRUE(same_bits(a, expected));
  EXPECT_TRUE(same_bits(b, expected));
}

// Each rank's number is finite, their sum is not.
TEST(LocalGroupTest, ASumThatOverflowsIsNotFinite) {
  for (const int64_t at : {0, 500, 1000}) {
    const auto groups = groups_of(2);
    for (const bool overflows : {true, false}) {
      std::vector<at::Tensor> all = {numbers(at::kFloat, 1001, 0), numbers(at::kFloat, 1001, 1)};
      if (overflows)
        for (auto& one : all) one[at] = 3e38;
      const WorkPtr first = groups[0]->all_reduce(all[0], "sum"), last = groups[1]->all_reduce(all[1], "sum");
      ASSERT_TRUE(first->done() && last->done());
      EXPECT_EQ(first->finite(), !overflows) << at;
      EXPECT_EQ(last->finite(), !overflows) << at;
    }
  }
}

TEST(LocalGroupTest, EveryKindAgreesWithItsDefinition) {
  constexpr int kRanks = 3;
  constexpr int64_t kCount = 1001;
  const auto groups = groups_of(kRanks);
  std::vector<at::Tensor> inputs, scattered, gathered, copied;
  for (int rank = 0; rank < kRanks; ++rank) {
    inputs.push_back(numbers(at::kBFloat16, kCount * kRanks, rank));
    scattered.push_back(at::zeros({kCount}, at::kBFloat16));
    gathered.push_back(at::zeros({kCount * kRanks * kRanks}, at::kBFloat16));
    copied.push_back(inputs[rank].clone());
    groups[rank]->reduce_scatter(inputs[rank], scattered[rank], "scatter");
    groups[rank]->all_gather(inputs[rank], gathered[rank], "gather");
    groups[rank]->broadcast(copied[rank], 1, "copy");
  }
  const at::Tensor sum = reference_sum(inputs);
  for (int rank = 0; rank < kRanks; ++rank) {
    EXPECT_TRUE(same_bits(scattered[rank], sum.narrow(0, rank * kCount, kCount)));
    EXPECT_TRUE(same_bits(copied[rank], inputs[1]));
    for (int other = 0; other < kRanks; ++other) {
      EXPECT_TRUE(
          same_bits(gathered[rank].narrow(0, other * kCount * kRanks, kCount * kRanks), inputs[other]));
    }
  }
}

TEST(LocalGroupTest, DifferentCollectivesAreAnErrorThatNamesBoth) {
  const auto fabric = LocalFabric::make(std::vector<int>{4, 6});
  const auto a = fabric->group(0);
  const auto b = fabric->group(1);
  const WorkPtr early = a->all_reduce(at::zeros({4}, at::kFloat), "bucket 3");
  const WorkPtr late = b->barrier("end");
  const std::string expected =
      "rank 4 posted #0 all_reduce of 16 bytes (bucket 3), rank 6 posted #0 barrier of 0 bytes (end)";
  for (const WorkPtr* work : {&early, &late}) {
    try {
      (*work)->done();
      ADD_FAILURE() << "no error";
    } catch (const CollectiveError& error) {
      EXPECT_THAT(error.what(), HasSubstr(expected));
    }
  }
}

TEST(LocalGroupTest, ThreadsMayUseTheirGroupsAtTheSameTime) {
  const Watchdog watchdog;
  constexpr int kRanks = 4;
  constexpr int kRounds = 200;
  const auto groups = groups_of(kRanks);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < kRounds; ++round) {
        const at::Tensor inout = at::zeros({100}, at::kLong).fill_(rank + round);
        wait(groups[rank]->all_reduce(inout, "sum"));
        wrong += inout.const_data_ptr<int64_t>()[99] != 6 + 4 * round;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(LocalWorldTest, MembersOfTheSameRanksMeetInTheSameGroupTurnByTurn) {
  const auto world = LocalWorld::make(3);
  const auto zero = world->factory(0);
  const auto two = world->factory(2);
  const auto first_of_zero = zero->make({0, 2});
  const auto second_of_zero = zero->make({0, 2});
  const auto first_of_two = two->make({0, 2});
  EXPECT_EQ(first_of_two->rank(), 1);
  const WorkPtr work = first_of_zero->barrier("first");
  const WorkPtr other = second_of_zero->barrier("second");
  first_of_two->barrier("first");
  EXPECT_TRUE(work->done());
  EXPECT_FALSE(other->done());
}

}  // namespace
}  // namespace tutti
