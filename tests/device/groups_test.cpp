// Groups of devices, whose ranks are in this process (collectives/device).

#include <ATen/ATen.h>

#include "collectives/device/group.h"
#include "collectives/header_log.h"
#include "collectives/local/group.h"
#include "tests/collectives/reference_cut.h"
#include "tests/collectives/reference_sum.h"
#include "tests/device/streams_for_tests.h"
#include "tests/sim/planted_bugs/broken_group.h"

namespace tutti {
namespace {

using test_device::device;
using test_device::Mode;
using test_device::on;
using test_device::take_findings;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

std::string error_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const CollectiveError& error) {
    return error.what();
  }
  return "";
}

// The control group of a rank, which may know a lost rank.
class Control final : public GroupBelow {
 public:
  using GroupBelow::GroupBelow;
  std::optional<int> lost_rank() const override { return lost; }
  std::optional<int> lost;
};

class DeviceGroups : public test_device::DeviceTest {
 protected:
  struct Rank {
    Device device;
    c10::Stream stream;
    std::shared_ptr<Launched> launched = std::make_shared<Launched>();
    std::vector<std::shared_ptr<Control>> controls = {};
    std::vector<std::unique_ptr<DeviceGroup>> groups = {};
  };

  void make_ranks(int ranks, int groups = 1) {
    ranks_.clear();
    for (int rank = 0; rank < ranks; ++rank)
      ranks_.push_back({library_->device(rank, rank), test_device::side_stream(rank)});
    for (int group = 0; group < groups; ++group) {
      const auto fabric = LocalFabric::make(ranks);
      for (Rank& rank : ranks_) {
        rank.controls.push_back(std::make_shared<Control>(fabric->group(number_of(rank))));
        rank.groups.push_back(
            std::make_unique<DeviceGroup>(rank.controls.back(), rank.device, library_, rank.launched));
      }
      EXPECT_EQ(ranks_[0].groups.back()->ready(), ranks == 1) << "the other ranks have no part in it yet";
      const auto is_ready = [](const Rank& rank) { return rank.groups.back()->ready(); };
      while (std::ranges::count_if(ranks_, is_ready) < ranks) std::this_thread::yield();
    }
  }
  int number_of(const Rank& rank) const { return static_cast<int>(&rank - ranks_.data()); }

  // Calls `post(group, device)` on the stream of each rank.
  template <class Post>
  std::vector<WorkPtr> post_all(Post post, int group = 0) {
    std::vector<WorkPtr> works;
    for (Rank& rank : ranks_) works.push_back(post_on(rank, post, group));
    return works;
  }
  // Each rank sums four ones; `sums`: of each rank.
  std::vector<WorkPtr> sum_ones(std::vector<at::Tensor>& sums) {
    return post_all([&](DeviceGroup& group, int rank) {
      sums.push_back(to_device(at::ones({4}), rank));
      return group.all_reduce(sums.back(), "sum");
    });
  }
  template <class Post>
  WorkPtr post_on(Rank& rank, Post post, int group = 0) {
    return on(rank.stream,
              [&] { return post(*rank.groups[static_cast<std::size_t>(group)], number_of(rank)); });
  }
  at::Tensor to_device(const at::Tensor& tensor, int rank) {
    const Rank& to = ranks_[static_cast<std::size_t>(rank)];
    return on(to.stream, [&] { return tensor.to(to.device.where); });
  }
  // The numbers of a device, for which the rank's stream waits.
  at::Tensor result(const Work& work, const at::Tensor& tensor, int rank) {
    return on(ranks_[static_cast<std::size_t>(rank)].stream, [&] {
      work.results().wait();
      return tensor.cpu();
    });
  }
  static bool all_done(const std::vector<WorkPtr>& works) {
    return std::ranges::all_of(works, [](const WorkPtr& work) { return work->done(); });
  }

  const std::shared_ptr<const DeviceLibrary> library_ = DeviceLibrary::load("test");
  std::vector<Rank> ranks_;
};
TUTTI_IN_BOTH_MODES(DeviceGroups);

struct Cutting {
  int ranks;
  at::ScalarType dtype;
  uint64_t salt;
  CutPtr cut;
  Parts parts;
  int64_t count;

  int without() const { return static_cast<int>(salt % static_cast<uint64_t>(ranks + 1)); }
  std::string text() const {
    return std::to_string(ranks) + " ranks, " + c10::toString(dtype) + ", salt " + std::to_string(salt);
  }
};

// Even cuts, and others. `without`: of a rank without destination, or of none.
std::vector<Cutting> cuttings() {
  std::vector<Cutting> all;
  for (const int ranks : {1, 2, 3, 4})
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kLong})
      for (uint64_t salt = 0; salt < 6; ++salt) {
        const bool even = salt % 3 == 0;
        const int64_t count = even ? ranks * 7 : 50;
        Parts parts = random_parts(ranks, count, salt);
        for (int rank = 0; even && rank < ranks; ++rank)
          parts[static_cast<std::size_t>(rank)] = {{rank * 7, rank * 7 + 7}};
        all.push_back({ranks, dtype, salt, std::make_shared<const Cut>(parts), parts, count});
      }
  return all;
}

TEST_P(DeviceGroups, GatherPartsIntoTheirRanges) {
  for (const Cutting& one : cuttings()) {
    make_ranks(one.ranks);
    const at::Tensor whole = numbers(one.dtype, one.count, 0), before = numbers(one.dtype, one.count, 1);
    std::vector<at::Tensor> outs(static_cast<std::size_t>(one.ranks));
    const auto works = post_all([&](DeviceGroup& group, int rank) {
      group.reserve(*one.cut, whole.element_size());
      at::Tensor& out = outs[static_cast<std::size_t>(rank)];
      if (rank != one.without()) out = to_device(before, rank);
      const at::Tensor part = to_device(part_of(whole, one.parts[static_cast<std::size_t>(rank)]), rank);
      return group.all_gather(part, out, one.cut, "gather");
    });
    ASSERT_TRUE(all_done(works));
    for (int rank = 0; rank < one.ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      if (!outs[r].defined()) continue;
      EXPECT_TRUE(same_bits(result(*works[r], outs[r], rank), outside_of(one.parts, before, whole)))
          << one.text();
    }
  }
}

TEST_P(DeviceGroups, GatherInPlaceTheOthersParts) {
  for (const Cutting& one : cuttings()) {
    make_ranks(one.ranks);
    const at::Tensor whole = numbers(one.dtype, one.count, 0), before = numbers(one.dtype, one.count, 1);
    std::vector<at::Tensor> outs;
    const auto works = post_all([&](DeviceGroup& group, int rank) {
      group.reserve(*one.cut, whole.element_size());
      Parts own(one.parts.size());
      own[static_cast<std::size_t>(rank)] = one.parts[static_cast<std::size_t>(rank)];
      outs.push_back(to_device(outside_of(own, before, whole), rank));
      return group.all_gather(outs.back(), outs.back(), one.cut, "gather");
    });
    ASSERT_TRUE(all_done(works));
    for (int rank = 0; rank < one.ranks; ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      EXPECT_TRUE(same_bits(result(*works[r], outs[r], rank), outside_of(one.parts, before, whole)))
          << one.text();
    }
  }
}

TEST_P(DeviceGroups, PartsOfASumHaveTheBitsOfTheTree) {
  for (const Cutting& one : cuttings())
    for (const bool in_place : {false, true}) {
      make_ranks(one.ranks);
      std::vector<at::Tensor> inputs, outs(static_cast<std::size_t>(one.ranks));
      const auto works = post_all([&](DeviceGroup& group, int rank) {
        const auto r = static_cast<std::size_t>(rank);
        inputs.push_back(numbers(one.dtype, one.count, rank));
        const at::Tensor input = to_device(inputs.back(), rank);
        group.reserve(*one.cut, input.element_size());
        if (in_place)
          outs[r] = input;
        else if (rank != one.without())
          outs[r] = to_device(at::zeros({one.cut->part_size(rank)}, one.dtype), rank);
        return group.reduce_scatter(input, outs[r], one.cut, "scatter");
      });
      ASSERT_TRUE(all_done(works));
      const at::Tensor sum = reference_sum(inputs);
      for (int rank = 0; rank < one.ranks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        if (!outs[r].defined()) continue;
        const at::Tensor out = result(*works[r], outs[r], rank);
        EXPECT_TRUE(same_bits(in_place ? part_of(out, one.parts[r]) : out, part_of(sum, one.parts[r])))
            << one.text();
      }
    }
}

TEST_P(DeviceGroups, SumsAndBroadcastsReachAllRanks) {
  for (const int ranks : {1, 2, 3, 4})
    for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt, at::kLong}) {
      make_ranks(ranks);
      std::vector<at::Tensor> inputs, sums, copies;
      const auto post_sum = [&](DeviceGroup& group, int rank) {
        inputs.push_back(numbers(dtype, 100, rank));
        sums.push_back(to_device(inputs.back(), rank));
        return group.all_reduce(sums.back(), "sum");
      };
      const auto post_copy = [&](DeviceGroup& group, int rank) {
        copies.push_back(to_device(inputs[static_cast<std::size_t>(rank)], rank));
        return group.broadcast(copies.back(), ranks - 1, "copy");
      };
      const auto summed = post_all(post_sum), copied = post_all(post_copy);
      ASSERT_TRUE(all_done(summed) && all_done(copied));
      for (int rank = 0; rank < ranks; ++rank) {
        const auto r = static_cast<std::size_t>(rank);
        EXPECT_TRUE(same_bits(result(*summed[r], sums[r], rank), reference_sum(inputs)));
        EXPECT_TRUE(same_bits(result(*copied[r], copies[r], rank), inputs.back()));
      }
    }
}

TEST_P(DeviceGroups, TensorsOfTheHostAreSummedThere) {
  make_ranks(2);
  const at::Tensor values = at::ones({3}, at::kDouble);
  const auto works = post_all([&](DeviceGroup& group, int) { return group.all_reduce(values, "sum"); });
  EXPECT_TRUE(all_done(works));
  EXPECT_TRUE(all_done(post_all([](DeviceGroup& group, int) { return group.barrier("meet"); })));
}

// A collective is done when all ranks have posted it, whatever their devices do.
TEST_P(DeviceGroups, ARankThatHasNotPostedIsWaitedFor) {
  make_ranks(2);
  const at::Tensor first = to_device(at::ones({4}), 0), second = to_device(at::ones({4}), 1);
  const auto sum = [](const at::Tensor& tensor) {
    return [tensor](DeviceGroup& group, int) { return group.all_reduce(tensor, "sum"); };
  };
  const WorkPtr mine = post_on(ranks_[0], sum(first));
  EXPECT_FALSE(mine->done());
  EXPECT_FALSE(mine->results().over()) << "the other rank has no part in it yet";
  const WorkPtr theirs = post_on(ranks_[1], sum(second));
  EXPECT_TRUE(mine->done() && theirs->done());
  EXPECT_TRUE(result(*mine, first, 0).equal(at::full({4}, 2.0)));
}

TEST_P(DeviceGroups, ResultsAreToBeWaitedFor) {
  make_ranks(2);
  std::vector<at::Tensor> sums;
  const auto works = sum_ones(sums);
  ASSERT_TRUE(all_done(works));
  const c10::Stream other = test_device::side_stream(0);
  on(other, [&] { sums[0].mul_(2); });
  EXPECT_THAT(take_findings(), Not(IsEmpty()));
  on(other, [&] {
    works[0]->results().wait();
    sums[0].mul_(2);
  });
  EXPECT_THAT(take_findings(), IsEmpty());
}

TEST_P(DeviceGroups, RanksThatPostOtherCollectivesAreNamed) {
  make_ranks(2);
  const at::Tensor first = to_device(at::ones({4}), 0), second = to_device(at::ones({8}), 1);
  const WorkPtr mine =
      post_on(ranks_[0], [&](DeviceGroup& group, int) { return group.all_reduce(first, "bucket 3"); });
  const WorkPtr theirs =
      post_on(ranks_[1], [&](DeviceGroup& group, int) { return group.all_reduce(second, "bucket 4"); });
  for (const WorkPtr* work : {&mine, &theirs})
    EXPECT_THAT(error_of([&] { (*work)->done(); }), AllOf(HasSubstr("all_reduce of 16 bytes (bucket 3)"),
                                                          HasSubstr("all_reduce of 32 bytes (bucket 4)")));
  mine->results().synchronize();
  theirs->results().synchronize();
}

TEST_P(DeviceGroups, RanksThatPostInDifferentOrdersAreNamed) {
  make_ranks(2, /*groups=*/2);
  std::vector<at::Tensor> three, four;
  for (const int rank : {0, 1}) {
    three.push_back(to_device(at::ones({3}), rank));
    four.push_back(to_device(at::ones({4}), rank));
  }
  std::vector<WorkPtr> works;
  const auto post_three = [&](DeviceGroup& group, int rank) {
    return group.all_reduce(three[static_cast<std::size_t>(rank)], "sum");
  };
  const auto post_four = [&](DeviceGroup& group, int rank) {
    return group.all_reduce(four[static_cast<std::size_t>(rank)], "sum");
  };
  works.push_back(post_on(ranks_[0], post_three, 0));
  works.push_back(post_on(ranks_[0], post_four, 1));
  works.push_back(post_on(ranks_[1], post_four, 1));
  works.push_back(post_on(ranks_[1], post_three, 0));
  EXPECT_TRUE(all_done(works)) << "each group has the same on both ranks";
  for (Rank& rank : ranks_) {
    std::string error;
    for (const auto& group : rank.groups) error += error_of([&] { group->check(); });
    EXPECT_THAT(error, AllOf(HasSubstr("different orders"), HasSubstr("all_reduce of 3 Float"),
                             HasSubstr("all_reduce of 4 Float")));
  }
  for (const WorkPtr& work : works) work->results().synchronize();
}

// The process of rank 1 ends between posting and the device's work.
TEST_P(DeviceGroups, ALostRankEndsWhatTheDeviceWaitsFor) {
  make_ranks(2);
  const at::Tensor mine = to_device(at::ones({4}), 0);
  const WorkPtr work =
      post_on(ranks_[0], [&](DeviceGroup& group, int) { return group.all_reduce(mine, "bucket 0"); });
  CollectiveHeader header = work->header();
  at::Tensor bytes = at::from_blob(&header, {sizeof header}, at::kByte),
             all = at::empty({2 * sizeof header}, at::kByte);
  const WorkPtr theirs = ranks_[1].controls[0]->all_gather(bytes, all, Cut::even(2, sizeof header), "");
  ASSERT_TRUE(work->done());
  DeviceGroup& group = *ranks_[0].groups[0];
  EXPECT_EQ(error_of([&] { group.check(); }), "");
  ranks_[0].controls[0]->lost = 1;
  EXPECT_THAT(error_of([&] { group.check(); }), AllOf(HasSubstr("rank 1 is gone"), HasSubstr("bucket 0")));
  work->results().synchronize();
}

TEST_P(DeviceGroups, ALostRankThatOwesNothingIsNoError) {
  make_ranks(2);
  std::vector<at::Tensor> sums;
  const auto works = sum_ones(sums);
  ASSERT_TRUE(all_done(works));
  ranks_[0].controls[0]->lost = 1;
  works[0]->results().synchronize();
  EXPECT_EQ(error_of([&] { ranks_[0].groups[0]->check(); }), "");
}

TEST_P(DeviceGroups, AnErrorLeavesNothingThatWaits) {
  make_ranks(2);
  const at::Tensor mine = to_device(at::ones({4}), 0);
  const WorkPtr work =
      post_on(ranks_[0], [&](DeviceGroup& group, int) { return group.all_reduce(mine, "sum"); });
  ranks_[0].groups[0]->abandon();
  work->results().synchronize();
  EXPECT_THAT(error_of([&] {
                post_on(ranks_[0], [&](DeviceGroup& group, int) { return group.all_reduce(mine, "sum"); });
              }),
              HasSubstr("not any more"));
}

}  // namespace
}  // namespace tutti
