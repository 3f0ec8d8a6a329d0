#include "collectives/cut.h"

#include <ATen/ops/zeros.h>
#include <sched.h>

#include <algorithm>
#include <functional>

#include "tests/collectives/mpi/fixture.h"
#include "tests/collectives/reference_cut.h"
#include "tests/collectives/reference_sum.h"

namespace tutti {
namespace {

struct CutCase {
  at::ScalarType dtype;
  int64_t count;
  uint64_t salt;
  bool in_window;
  Parts parts;
  CutPtr cut;

  std::string text() const {
    return std::string(c10::toString(dtype)) + " x " + std::to_string(count) + ", salt " +
           std::to_string(salt) + (in_window ? ", window" : "");
  }
};

class MpiCutTest : public MpiTest {
 protected:
  // The largest take more pieces than may be under way.
  std::vector<CutCase> cases() const {
    std::vector<CutCase> all;
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kLong})
      for (const int64_t count :
           {int64_t{1}, int64_t{7}, int64_t{900}, int64_t{5000}, 400003 * int64_t{size()}})
        for (uint64_t salt = 0; salt < (count <= 5000 ? 2 : dtype == at::kFloat ? 1 : 0); ++salt)
          for (const bool in_window : {false, true}) {
            const Parts parts = random_parts(size(), count, salt);
            all.push_back({dtype, count, salt, in_window, parts, std::make_shared<const Cut>(parts)});
          }
    return all;
  }

  // Some rank has no destination, or none is without.
  bool has_destination(const CutCase& one) const {
    return static_cast<int>((one.salt + one.count) % (size() + 1)) != rank();
  }

  static at::Tensor numbers_of(const CutCase& one, int rank) {
    return numbers(one.dtype, one.count, rank, one.salt);
  }

  void gather(MpiGroup& group, const CutCase& one) const {
    const at::Tensor whole = numbers(one.dtype, one.count, 0), before = numbers(one.dtype, one.count, 1);
    const at::Tensor own = part_of(whole, one.parts[rank()]);
    const at::Tensor input = placed(group, own, one.in_window);
    const at::Tensor out = has_destination(one) ? before.clone() : at::Tensor();
    wait(group.all_gather(input, out, one.cut, "gather"));
    EXPECT_TRUE(!out.defined() || same_bits(out, outside_of(one.parts, before, whole))) << one.text();
    EXPECT_TRUE(same_bits(input, own));
  }

  void scatter(MpiGroup& group, const CutCase& one) const {
    std::vector<at::Tensor> all;
    for (int other = 0; other < size(); ++other) all.push_back(numbers_of(one, other));
    const at::Tensor input = placed(group, all[rank()], one.in_window);
    const at::Tensor memory = at::zeros({one.cut->part_size(rank())}, one.dtype);
    const at::Tensor out = has_destination(one) ? memory : at::Tensor();
    wait(group.reduce_scatter(input, out, one.cut, "scatter"));
    EXPECT_TRUE(!out.defined() || same_bits(out, part_of(reference_sum(all), one.parts[rank()])))
        << one.text();
    EXPECT_TRUE(same_bits(input, all[rank()]));
  }

  // The parts of some ranks lie within their wholes.
  bool is_in_place(const CutCase& one) const {
    return one.salt == 0 || rank() % 2 == static_cast<int>(one.salt % 2);
  }

  void gather_in_place(MpiGroup& group, const CutCase& one) const {
    const at::Tensor whole = numbers(one.dtype, one.count, 0), before = numbers(one.dtype, one.count, 1);
    const at::Tensor own = placed(group, part_of(whole, one.parts[rank()]), one.in_window);
    const at::Tensor at_its_places = outside_of({one.parts[rank()]}, before, whole);
    const at::Tensor out = placed(group, is_in_place(one) ? at_its_places : before, one.in_window);
    wait(group.all_gather(is_in_place(one) ? out : own, out, one.cut, "gather"));
    EXPECT_TRUE(same_bits(out, outside_of(one.parts, before, whole))) << one.text();
  }

  void scatter_in_place(MpiGroup& group, const CutCase& one) const {
    std::vector<at::Tensor> all;
    for (int other = 0; other < size(); ++other) all.push_back(numbers_of(one, other));
    const at::Tensor input = placed(group, all[rank()], one.in_window);
    const at::Tensor part = at::zeros({one.cut->part_size(rank())}, one.dtype), sum = reference_sum(all);
    wait(group.reduce_scatter(input, is_in_place(one) ? input : part, one.cut, "scatter"));
    if (is_in_place(one))
      EXPECT_TRUE(same_bits(input, outside_of({one.parts[rank()]}, all[rank()], sum))) << one.text();
    else
      EXPECT_TRUE(same_bits(part, part_of(sum, one.parts[rank()]))) << one.text();
  }

  // Calls `ready` until it is true, or gives up.
  bool soon(const std::function<bool()>& ready) const {
    const TimePoint deadline = clock_.now() + std::chrono::seconds(20);
    while (clock_.now() < deadline) {
      if (ready()) return true;
      sched_yield();
    }
    return false;
  }
};

TEST_F(MpiCutTest, GathersPartsIntoTheirRanges) {
  const auto group = make_group();
  for (const CutCase& one : cases()) {
    gather(*group, one);
    gather_in_place(*group, one);
  }
}

TEST_F(MpiCutTest, PartsOfASumHaveTheBitsOfTheTree) {
  const auto group = make_group();
  for (const CutCase& one : cases()) {
    scatter(*group, one);
    scatter_in_place(*group, one);
  }
}

TEST_F(MpiCutTest, PartsOfASumHaveTheBitsOfAnAllReduce) {
  const auto group = make_group();
  const Parts parts = random_parts(size(), 300007, 8);
  const at::Tensor input = placed(*group, numbers(at::kFloat, 300007, rank()), true);
  const auto cut = std::make_shared<const Cut>(parts);
  const at::Tensor out = at::zeros({cut->part_size(rank())}, at::kFloat);
  wait(group->reduce_scatter(input, out, cut, "scatter"));
  wait(group->all_reduce(input, "sum"));
  EXPECT_TRUE(same_bits(out, part_of(input, parts[rank()])));
}

// The last rank does not poll while the others copy its data. Rank 0 has no data, but a place in the window.
TEST_F(MpiCutTest, DataInAWindowIsReadWithoutItsOwnersHelp) {
  if (size() == 1 || world->host_ranks().size() != static_cast<std::size_t>(size())) return;
  const auto group = make_group();
  const int64_t count = 100000;
  Parts parts(size());
  for (int64_t block = 0; block < 20; ++block)
    parts[1 + block % (size() - 1)].push_back({block * count / 20, (block + 1) * count / 20});
  parts[0] = {parts[1].back()};
  parts[1].pop_back();
  for (const bool owns_some : {true, false}) {
    if (!owns_some) parts[0].clear();
    const auto cut = std::make_shared<const Cut>(parts);
    std::vector<at::Tensor> all;
    for (int other = 0; other < size(); ++other) all.push_back(numbers(at::kFloat, count, other));
    const at::Tensor whole = placed(*group, all[rank()], true);
    const at::Tensor input = placed(*group, part_of(all[0], parts[rank()]), true);
    const at::Tensor before = at::zeros({count}, at::kFloat), out = before.clone();
    const at::Tensor part = at::zeros({cut->part_size(rank())}, at::kFloat);
    const at::Tensor gathered = outside_of(parts, before, all[0]);
    const at::Tensor scattered = part_of(reference_sum(all), parts[rank()]);

    const WorkPtr gather = group->all_gather(input, out, cut, "gather");
    const WorkPtr scatter = group->reduce_scatter(whole, part, cut, "scatter");
    check_mpi(MPI_Barrier(world->comm()), "MPI_Barrier");
    const auto all_is_here = [&] {
      gather->done();
      return same_bits(out, gathered) && same_bits(part, scattered);
    };
    EXPECT_TRUE(rank() == size() - 1 || soon(all_is_here));
    check_mpi(MPI_Barrier(world->comm()), "MPI_Barrier");
    wait(gather);
    wait(scatter);
  }
}

TEST_F(MpiCutTest, OnlyTheOwnerKnowsOfAnOverflow) {
  if (size() == 1) return;
  const auto group = make_group();
  for (const int64_t count : {10, 100000}) {
    Parts parts;
    for (int64_t r = 0; r < size(); ++r)
      parts.push_back({{(2 * r + 1) * count, (2 * r + 2) * count}, {2 * r * count, (2 * r + 1) * count}});
    const at::Tensor input = numbers(at::kFloat, 2 * count * size(), rank());
    input[2 * count + 3] = 3e38;
    const at::Tensor out = at::zeros({2 * count}, at::kFloat);
    const WorkPtr work = group->reduce_scatter(input, out, std::make_shared<const Cut>(parts), "scatter");
    wait(work);
    EXPECT_EQ(work->finite(), rank() != 1);
  }
}

TEST_F(MpiCutTest, GathersAndReductionsOverlapOnTwoGroups) {
  const auto gathers = make_group(), reductions = make_group();
  constexpr int kMany = 12;
  std::vector<CutCase> used;
  std::vector<at::Tensor> wholes, outs, parts;
  std::vector<WorkPtr> works;
  for (int i = 0; i < kMany; ++i) {
    const int64_t count = i % 3 == 0 ? 500 : 90001 * (i % 4 + 1);
    const Parts cut_parts = random_parts(size(), count, i);
    used.push_back({at::kFloat, count, static_cast<uint64_t>(i), i % 2 == 0, cut_parts,
                    std::make_shared<const Cut>(cut_parts)});
    const CutCase& one = used.back();
    const at::Tensor own = part_of(numbers_of(one, 0), one.parts[rank()]);
    wholes.push_back(placed(*reductions, numbers_of(one, rank()), one.in_window));
    parts.push_back(at::zeros({one.cut->part_size(rank())}, at::kFloat));
    outs.push_back(at::zeros({count}, at::kFloat));
    works.push_back(
        gathers->all_gather(placed(*gathers, own, one.in_window), outs.back(), one.cut, "gather"));
    works.push_back(reductions->reduce_scatter(wholes.back(), parts.back(), one.cut, "scatter"));
  }
  const auto all_done = [&] {
    return std::ranges::count_if(works, [](const WorkPtr& work) { return work->done(); }) ==
           std::ssize(works);
  };
  EXPECT_TRUE(soon(all_done));
  for (int i = 0; i < kMany; ++i) {
    const CutCase& one = used[i];
    std::vector<at::Tensor> all;
    for (int other = 0; other < size(); ++other) all.push_back(numbers_of(one, other));
    EXPECT_TRUE(same_bits(outs[i], outside_of(one.parts, at::zeros({one.count}, at::kFloat), all[0]))) << i;
    EXPECT_TRUE(same_bits(parts[i], part_of(reference_sum(all), one.parts[rank()]))) << i;
  }
}

}  // namespace
}  // namespace tutti
