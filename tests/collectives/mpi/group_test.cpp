#include "collectives/local/group.h"

#include <ATen/ops/zeros.h>
#include <sched.h>

#include <algorithm>
#include <thread>

#include "collectives/mesh.h"
#include "collectives/mpi/group.h"
#include "tests/collectives/mpi/fixture.h"
#include "tests/collectives/reference_sum.h"

namespace tutti {
namespace {

const std::vector<at::ScalarType> kDtypes = {at::kFloat, at::kDouble, at::kBFloat16,
                                             at::kHalf,  at::kInt,    at::kLong};
const std::vector<int64_t> kCounts = {0, 1, 7, 5000, 1000003};
// Enough for a rank's part to take more pieces than may be under way.
const std::vector<int64_t> kPartCounts = {0, 1, 7, 5000, 400003};

class MpiGroupTest : public MpiTest {
 protected:
  std::vector<at::Tensor> numbers_of_all(at::ScalarType dtype, int64_t count, uint64_t salt = 0) const {
    std::vector<at::Tensor> all;
    for (int other = 0; other < size(); ++other) all.push_back(numbers(dtype, count, other, salt));
    return all;
  }
};

TEST_F(MpiGroupTest, AllReduceHasTheBitsOfTheTree) {
  const auto group = make_group();
  for (const int64_t count : kCounts) {
    for (const auto dtype : kDtypes) {
      const auto all = numbers_of_all(dtype, count);
      const at::Tensor expected = reference_sum(all);
      for (const bool in_window : {false, true}) {
        const at::Tensor inout = placed(*group, all[rank()], in_window);
        wait(group->all_reduce(inout, "sum"));
        EXPECT_TRUE(same_bits(inout, expected))
            << c10::toString(dtype) << " x " << count << " window " << in_window;
      }
    }
  }
}

// Each rank's numbers are finite, and only one of them has looked at the part of the sum that is not.
TEST_F(MpiGroupTest, ASumThatOverflowsAnywhereIsNotFiniteToAll) {
  if (size() == 1) return;
  const auto group = make_group();
  for (const int64_t count : {7, 5000, 1000003}) {
    for (const int64_t at : {int64_t{-1}, int64_t{0}, count / 2, count - 1}) {
      for (const bool in_window : {false, true}) {
        const at::Tensor own = numbers(at::kFloat, count, rank());
        if (at >= 0) own[at] = 3e38;
        const WorkPtr work = group->all_reduce(placed(*group, own, in_window), "sum");
        wait(work);
        EXPECT_EQ(work->finite(), at < 0) << at << " of " << count << " window " << in_window;
      }
    }
  }
}

TEST_F(MpiGroupTest, ReduceScatterGivesEachItsChunkOfTheTree) {
  const auto group = make_group();
  for (const int64_t count : kPartCounts) {
    for (const auto dtype : kDtypes) {
      const auto all = numbers_of_all(dtype, count * size());
      const at::Tensor expected = reference_sum(all).narrow(0, rank() * count, count);
      for (const bool in_window : {false, true}) {
        const at::Tensor input = placed(*group, all[rank()], in_window);
        const at::Tensor out = at::zeros({count}, dtype);
        wait(group->reduce_scatter(input, out, "scatter"));
        EXPECT_TRUE(same_bits(out, expected))
            << c10::toString(dtype) << " x " << count << " window " << in_window;
        EXPECT_TRUE(same_bits(input, all[rank()]));
      }
    }
  }
}

TEST_F(MpiGroupTest, AllGatherPutsChunksInRankOrder) {
  const auto group = make_group();
  for (const int64_t count : kPartCounts) {
    for (const auto dtype : kDtypes) {
      for (const bool in_window : {false, true}) {
        const at::Tensor input = placed(*group, numbers(dtype, count, rank()), in_window);
        const at::Tensor out = at::zeros({count * size()}, dtype);
        wait(group->all_gather(input, out, "gather"));
        for (int other = 0; other < size(); ++other) {
          EXPECT_TRUE(same_bits(out.narrow(0, other * count, count), numbers(dtype, count, other)))
              << c10::toString(dtype) << " x " << count << " window " << in_window;
        }
      }
    }
  }
}

TEST_F(MpiGroupTest, AllGatherWorksInPlace) {
  const auto group = make_group();
  for (const bool in_window : {false, true}) {
    for (const int64_t count : {100, 300001}) {
      const at::Tensor out = placed(*group, at::zeros({count * size()}, at::kFloat), in_window);
      const at::Tensor part = out.narrow(0, rank() * count, count);
      part.copy_(numbers(at::kFloat, count, rank()));
      wait(group->all_gather(part, out, "gather"));
      for (int other = 0; other < size(); ++other) {
        EXPECT_TRUE(same_bits(out.narrow(0, other * count, count), numbers(at::kFloat, count, other)));
      }
    }
  }
}

TEST_F(MpiGroupTest, BroadcastCopiesTheRoot) {
  const auto group = make_group();
  for (int root = 0; root < size(); ++root) {
    for (const int64_t count : kCounts) {
      for (const bool in_window : {false, true}) {
        const at::Tensor inout = placed(*group, numbers(at::kFloat, count, rank()), in_window);
        wait(group->broadcast(inout, root, "root"));
        EXPECT_TRUE(same_bits(inout, numbers(at::kFloat, count, root))) << root << " x " << count;
      }
    }
  }
}

TEST_F(MpiGroupTest, ABarrierHoldsUntilTheLastRankArrives) {
  const auto group = make_group();
  for (int late = 0; late < size(); ++late) {
    const TimePoint start = clock_.now();
    while (rank() == late && clock_.now() < start + std::chrono::milliseconds(20)) continue;
    const at::Tensor came = at::zeros({1}, at::kLong);
    const at::Tensor all_came = at::zeros({size()}, at::kLong);
    came.fill_(clock_.now().time_since_epoch().count());
    wait(group->barrier("barrier"));
    const int64_t left = clock_.now().time_since_epoch().count();
    wait(group->all_gather(came, all_came, "times"));
    for (int other = 0; other < size(); ++other) EXPECT_GE(left, all_came.const_data_ptr<int64_t>()[other]);
  }
}

TEST_F(MpiGroupTest, HasTheBitsOfTheLocalGroup) {
  const auto all = numbers_of_all(at::kFloat, 123457);
  const auto fabric = LocalFabric::make(size());
  std::vector<at::Tensor> local;
  std::vector<std::unique_ptr<Group>> endpoints;
  for (int other = 0; other < size(); ++other) {
    endpoints.push_back(fabric->group(other));
    local.push_back(all[other].clone());
    endpoints.back()->all_reduce(local.back(), "sum");
  }
  const auto group = make_group();
  const at::Tensor inout = placed(*group, all[rank()], true);
  wait(group->all_reduce(inout, "sum"));
  EXPECT_TRUE(same_bits(inout, local[rank()]));
}

TEST_F(MpiGroupTest, CollectivesMayOverlapAndBeWaitedForInAnyOrder) {
  const auto group = make_group();
  constexpr int kMany = 3 * ControlWindow::kSlots;
  const std::vector<int64_t> counts = {3, 40000, 1500, 300000};
  const at::Tensor window = wait_for_memory(*group, int64_t{4} << 20);
  std::vector<at::Tensor> tensors;
  std::vector<WorkPtr> works;
  int64_t used = 0;
  for (int i = 0; i < kMany; ++i) {
    at::Tensor tensor = numbers(at::kFloat, counts[i % counts.size()], rank(), i);
    const auto bytes = static_cast<int64_t>(tensor.nbytes());
    if (i % 3 == 0 && used + bytes <= window.numel()) {
      const at::Tensor inside = window.narrow(0, used, bytes).view(at::kFloat);
      inside.copy_(tensor);
      tensor = inside;
      used += (bytes + 63) / 64 * 64;
    }
    tensors.push_back(tensor);
    works.push_back(i % 5 == 4 ? group->broadcast(tensor, i % size(), "copy")
                               : group->all_reduce(tensor, "sum"));
  }
  std::vector<int> order(kMany);
  for (int i = 0; i < kMany; ++i) order[i] = rank() % 2 ? kMany - 1 - i : i;
  for (const int i : order) wait(works[i]);
  for (int i = 0; i < kMany; ++i) {
    const auto all = numbers_of_all(at::kFloat, counts[i % counts.size()], i);
    EXPECT_TRUE(same_bits(tensors[i], i % 5 == 4 ? all[i % size()] : reference_sum(all))) << i;
  }
}

TEST_F(MpiGroupTest, RanksMayDifferInWhereTheirDataLies) {
  const auto group = make_group();
  const auto all = numbers_of_all(at::kFloat, 400000);
  const at::Tensor windows[] = {wait_for_memory(*group, 1600000), wait_for_memory(*group, 1600000)};
  for (int pattern = 0; pattern < 3; ++pattern) {
    const int place = (rank() + pattern) % 3;
    at::Tensor inout = all[rank()].clone();
    if (place < 2) inout = windows[place].view(at::kFloat).copy_(inout);
    wait(group->all_reduce(inout, "sum"));
    EXPECT_TRUE(same_bits(inout, reference_sum(all)));
  }
}

TEST_F(MpiGroupTest, GroupsOfSomeRanksRunBesideEachOther) {
  std::vector<int> mine;
  for (int other = rank() % 2; other < size(); other += 2) mine.push_back(other);
  MpiGroup half(*world, clock_, mine);
  wait_until_ready(half);
  const auto group = make_group();
  std::vector<at::Tensor> of_mine;
  for (const int other : mine) of_mine.push_back(numbers(at::kFloat, 70001, other));
  const at::Tensor a = of_mine[half.rank()].clone();
  const at::Tensor b = numbers(at::kFloat, 70001, rank());
  const WorkPtr in_half = half.all_reduce(a, "half");
  const WorkPtr in_all = group->all_reduce(b, "all");
  wait(in_all);
  wait(in_half);
  EXPECT_TRUE(same_bits(a, reference_sum(of_mine)));
  EXPECT_TRUE(same_bits(b, reference_sum(numbers_of_all(at::kFloat, 70001))));
}

TEST_F(MpiGroupTest, AllocatedMemoryIsZeroedAlignedAndOutlivesTheGroup) {
  at::Tensor memory;
  {
    const auto group = make_group();
    memory = wait_for_memory(*group, 100001);
    wait_for_memory(*group, 5000);
    EXPECT_EQ(memory.numel(), 100001);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory.data_ptr()) % 64, 0u);
    EXPECT_TRUE(same_bits(memory, at::zeros({100001}, at::kByte)));
  }
  memory.fill_(7);
  EXPECT_EQ(memory.const_data_ptr<uint8_t>()[100000], 7);
}

TEST_F(MpiGroupTest, MemoryThatOneRankCannotHaveIsAnErrorOnItsWholeHost) {
  const auto group = make_group();
  const int greedy = world->host_ranks().back();
  EXPECT_THROW(wait_for_memory(*group, rank() == greedy ? int64_t{1} << 50 : 100), OperatingError);
  EXPECT_EQ(wait_for_memory(*group, 100).numel(), 100);
}

// All other ranks come late: none of this rank's calls waits for them, and each is named.
TEST_F(MpiGroupTest, MakingAGroupAndItsMemoryNeverBlocks) {
  constexpr Nanoseconds kLate = std::chrono::milliseconds(400);
  const auto longest_call = [&](const auto& done) {
    Nanoseconds longest{0};
    for (bool over = false; !over; sched_yield()) {
      const TimePoint before = clock_.now();
      over = done();
      if (!over) longest = std::max(longest, clock_.now() - before);
    }
    return longest;
  };
  MpiGroup group(*world, clock_, everyone());
  if (rank() > 0) std::this_thread::sleep_for(kLate);
  if (rank() == 0) {
    EXPECT_EQ(group.ready(), size() == 1);
    EXPECT_EQ(std::ssize(group.late()), size() - 1);
  }
  EXPECT_LT(longest_call([&] { return group.ready(); }), kLate / 2);
  if (rank() > 0) std::this_thread::sleep_for(kLate);
  const AllocationPtr memory = group.allocate(1000);
  EXPECT_LT(longest_call([&] { return memory->done(); }), kLate / 2);
  EXPECT_EQ(memory->memory().numel(), 1000);
  wait(group.barrier("the end"));
}

TEST_F(MpiGroupTest, AMeshHasAGroupForEachAxis) {
  const int columns = size() % 2 == 0 ? 2 : 1;
  const Mesh mesh({{"replicate", size() / columns}, {"shard", columns}});
  MpiGroupFactory factory(*world, clock_);
  for (const std::string axis : {"replicate", "shard"}) {
    const auto peers = mesh.peers(rank(), {axis});
    const auto group = factory.make(peers);
    wait_until_ready(*group);
    EXPECT_EQ(group->rank(), mesh.coordinate(rank(), axis));
    ASSERT_EQ(group->size(), mesh.axis_size(axis));
    const at::Tensor out = at::zeros({group->size()}, at::kLong);
    wait(group->all_gather(at::zeros({1}, at::kLong).fill_(rank()), out, axis));
    for (int i = 0; i < group->size(); ++i) EXPECT_EQ(out.const_data_ptr<int64_t>()[i], peers[i]);
  }
}

TEST_F(MpiGroupTest, RemembersWhatItPosted) {
  const auto group = make_group();
  wait(group->barrier("first"));
  wait(group->all_reduce(at::zeros({4}, at::kFloat),
                         "second, with a label that is longer than a header holds"));
  const auto headers = group->posted(10);
  ASSERT_EQ(headers.size(), 2u);
  EXPECT_EQ(headers[0].text(), "#0 barrier of 0 bytes (first)");
  EXPECT_EQ(headers[1].text(), "#1 all_reduce of 16 bytes (second, with a label that is longer tha)");
}

}  // namespace
}  // namespace tutti
