#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <sched.h>

#include "tests/collectives/mpi/fixture.h"
#include "tests/collectives/reference_cut.h"
#include "tests/collectives/reference_sum.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class MpiMismatchTest : public MpiTest {
 protected:
  void SetUp() override {
    if (size() == 1) GTEST_SKIP() << "takes two ranks";
  }

  // The error of `post` and of waiting for its work, and the time until then.
  struct Outcome {
    std::string error = "no error";
    Nanoseconds took{};
  };
  template <class Post>
  Outcome outcome_of(MpiGroup& group, Post post) const {
    const TimePoint start = clock_.now();
    Outcome outcome;
    try {
      wait(post());
      wait(group.barrier("what comes after"));
    } catch (const CollectiveError& error) {
      outcome.error = error.what();
    }
    outcome.took = clock_.now() - start;
    return outcome;
  }

  // Lets no rank continue with the next test, and a late alarm reach nobody, before all are here.
  void meet() const { wait(make_group()->barrier("meet")); }
};

TEST_F(MpiMismatchTest, DifferentKindsAreNamedOnEveryRankWithinTwoSeconds) {
  const auto group = make_group();
  const int odd = size() - 1;
  const auto tensor = at::zeros({1000}, at::kFloat);
  const Outcome outcome = outcome_of(*group, [&] {
    wait(group->barrier("start"));  // in which the others' alarm may find this rank
    return rank() == odd ? group->barrier("end") : group->all_reduce(tensor, "bucket 3");
  });
  EXPECT_THAT(outcome.error,
              AllOf(HasSubstr("posted #1 all_reduce of 4000 bytes (bucket 3)"),
                    HasSubstr("rank " + std::to_string(odd) + " posted #1 barrier of 0 bytes (end)")));
  EXPECT_LT(outcome.took, std::chrono::seconds(2));
  meet();
}

TEST_F(MpiMismatchTest, DifferentSizesAreNamedOnEveryRankWithinTwoSeconds) {
  const auto group = make_group();
  const int64_t count = rank() == 0 ? 100000 : 200000;
  const auto tensor = at::zeros({count}, at::kFloat);
  const Outcome outcome = outcome_of(*group, [&] { return group->broadcast(tensor, 0, "weights"); });
  EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 0 posted #0 broadcast of 400000 bytes (weights)"),
                                   HasSubstr("posted #0 broadcast of 800000 bytes (weights)")));
  EXPECT_LT(outcome.took, std::chrono::seconds(2));
  meet();
}

TEST_F(MpiMismatchTest, DifferentCutsAreNamedOnEveryRankWithinTwoSeconds) {
  for (const int64_t count : {100, 100000}) {
    const auto group = make_group();
    Parts parts;
    for (int64_t r = 0; r < size(); ++r) parts.push_back({{r * count, (r + 1) * count}});
    if (rank() == 0) std::reverse(parts.begin(), parts.end());
    const auto cut = std::make_shared<const Cut>(parts);
    const auto part = at::zeros({count}, at::kFloat), whole = at::zeros({count * size()}, at::kFloat);
    const Outcome outcome = outcome_of(*group, [&] {
      return count == 100 ? group->all_gather(part, whole, cut, "unit")
                          : group->reduce_scatter(whole, part, cut, "unit");
    });
    EXPECT_THAT(outcome.error, AllOf(HasSubstr("rank 0 posted #0 "), HasSubstr("(unit), cut otherwise")));
    EXPECT_LT(outcome.took, std::chrono::seconds(2));
    meet();
  }
}

TEST_F(MpiMismatchTest, AGroupOfSomeRanksNamesRanksOfTheWorld) {
  if (size() < 3) return;
  const int last = size() - 1;
  MpiGroupFactory factory(*world, clock_);
  std::unique_ptr<Group> group;
  if (rank() >= last - 1) {
    group = factory.make({last - 1, last});
    wait_until_ready(*group);
    EXPECT_EQ(group->world_rank(1), last);
    const Outcome outcome = outcome_of(static_cast<MpiGroup&>(*group), [&] {
      return rank() == last ? group->barrier("end") : group->broadcast(at::zeros({4}, at::kFloat), 0, "copy");
    });
    EXPECT_THAT(
        outcome.error,
        AllOf(HasSubstr("rank " + std::to_string(last - 1) + " posted #0 broadcast of 16 bytes (copy)"),
              HasSubstr("rank " + std::to_string(last) + " posted #0 barrier of 0 bytes (end)")));
  }
  meet();
}

TEST_F(MpiMismatchTest, RanksThatAreLateAreRanksOfTheWorld) {
  const int last = size() - 1;
  if (size() >= 3 && rank() >= last - 1 && world->host_of()[last] == world->host_of()[last - 1]) {
    MpiGroup group(*world, clock_, {last - 1, last});
    wait_until_ready(group);
    const MpiComm both = world->make_comm({last - 1, last});
    WorkPtr work;
    if (rank() != last) {
      work = group.barrier("end");
      EXPECT_EQ(group.late(), std::vector<int>{last});
    }
    check_mpi(MPI_Barrier(both.get()), "MPI_Barrier");
    if (rank() == last) work = group.barrier("end");
    wait(work);
  }
  meet();
}

TEST_F(MpiMismatchTest, AGroupThatFailedStaysFailed) {
  const auto group = make_group();
  const auto tensor = at::zeros({rank() == 0 ? 10 : 20}, at::kFloat);
  const Outcome first = outcome_of(*group, [&] { return group->all_reduce(tensor, "sum"); });
  const Outcome second = outcome_of(*group, [&] { return group->barrier("later"); });
  EXPECT_EQ(first.error, second.error);
  EXPECT_NE(first.error, "no error");
  meet();
}

TEST_F(MpiMismatchTest, ARankThatIsLateIsNoError) {
  const auto group = make_group();
  const TimePoint start = clock_.now();
  while (rank() == 0 && clock_.now() < start + std::chrono::milliseconds(700)) sched_yield();
  const at::Tensor inout = numbers(at::kFloat, 5000, 0);
  wait(group->broadcast(inout, 0, "late"));
  wait(group->barrier("end"));
  EXPECT_TRUE(same_bits(inout, numbers(at::kFloat, 5000, 0)));
}

TEST_F(MpiMismatchTest, AllRanksAreAlive) { EXPECT_EQ(world->lost_peer(), std::nullopt); }

}  // namespace
}  // namespace tutti
