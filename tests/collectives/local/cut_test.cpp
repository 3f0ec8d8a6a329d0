#include "collectives/cut.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/local/group.h"
#include "collectives/local/world.h"
#include "tests/collectives/reference_cut.h"
#include "tests/collectives/reference_sum.h"

namespace tutti {
namespace {

using testing::HasSubstr;

struct CutCase {
  int ranks;
  at::ScalarType dtype;
  int64_t count;
  uint64_t salt;

  int without() const {
    return static_cast<int>(salt % (ranks + 1));
  }  // the rank without destination, if any
};

std::vector<CutCase> cases() {
  std::vector<CutCase> all;
  for (const int ranks : {1, 2, 3, 4})
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kLong})
      for (const int64_t count : {1, 7, 5000})
        for (uint64_t salt = 0; salt < 6; ++salt) all.push_back({ranks, dtype, count, salt});
  return all;
}

class LocalCutTest : public testing::Test {
 protected:
  void make_groups(int ranks) {
    groups_.clear();
    const auto fabric = LocalFabric::make(ranks);
    for (int rank = 0; rank < ranks; ++rank) groups_.push_back(fabric->group(rank));
  }

  std::vector<std::unique_ptr<Group>> groups_;
};

TEST_F(LocalCutTest, GathersPartsIntoTheirRanges) {
  for (const CutCase& one : cases()) {
    make_groups(one.ranks);
    const Parts parts = random_parts(one.ranks, one.count, one.salt);
    const auto cut = std::make_shared<const Cut>(parts);
    const at::Tensor whole = numbers(one.dtype, one.count, 0), before = numbers(one.dtype, one.count, 1);
    std::vector<at::Tensor> outs;
    WorkPtr last;
    for (int rank = 0; rank < one.ranks; ++rank) {
      outs.push_back(rank == one.without() ? at::Tensor() : before.clone());
      last = groups_[rank]->all_gather(part_of(whole, parts[rank]), outs.back(), cut, "gather");
    }
    EXPECT_TRUE(last->done());
    for (const at::Tensor& out : outs)
      EXPECT_TRUE(!out.defined() || same_bits(out, outside_of(parts, before, whole)))
          << one.ranks << " ranks, salt " << one.salt;
  }
}

TEST_F(LocalCutTest, PartsOfASumHaveTheBitsOfTheTree) {
  for (const CutCase& one : cases()) {
    make_groups(one.ranks);
    const Parts parts = random_parts(one.ranks, one.count, one.salt);
    const auto cut = std::make_shared<const Cut>(parts);
    std::vector<at::Tensor> inputs, outs;
    WorkPtr last;
    for (int rank = 0; rank < one.ranks; ++rank) {
      inputs.push_back(numbers(one.dtype, one.count, rank));
      const at::Tensor out = at::zeros({cut->part_size(rank)}, one.dtype);
      outs.push_back(rank == one.without() ? at::Tensor() : out);
      last = groups_[rank]->reduce_scatter(inputs.back(), outs.back(), cut, "scatter");
    }
    EXPECT_TRUE(last->done());
    const at::Tensor sum = reference_sum(inputs);
    for (int rank = 0; rank < one.ranks; ++rank)
      EXPECT_TRUE(!outs[rank].defined() || same_bits(outs[rank], part_of(sum, parts[rank])))
          << one.ranks << " ranks, salt " << one.salt;
  }
}

TEST_F(LocalCutTest, PartsMayLieWithinTheirWholes) {
  for (const CutCase& one : cases()) {
    make_groups(one.ranks);
    const Parts parts = random_parts(one.ranks, one.count, one.salt);
    const auto cut = std::make_shared<const Cut>(parts);
    const at::Tensor whole = numbers(one.dtype, one.count, 0), before = numbers(one.dtype, one.count, 1);
    std::vector<at::Tensor> inputs, gathered, summed;
    for (int rank = 0; rank < one.ranks; ++rank) {
      inputs.push_back(numbers(one.dtype, one.count, rank));
      gathered.push_back(outside_of({parts[rank]}, before, whole));
      summed.push_back(inputs.back().clone());
      groups_[rank]->all_gather(gathered.back(), gathered.back(), cut, "gather");
      groups_[rank]->reduce_scatter(summed.back(), summed.back(), cut, "scatter");
    }
    const at::Tensor sum = reference_sum(inputs);
    for (int rank = 0; rank < one.ranks; ++rank) {
      EXPECT_TRUE(same_bits(gathered[rank], outside_of(parts, before, whole)));
      EXPECT_TRUE(same_bits(summed[rank], outside_of({parts[rank]}, inputs[rank], sum)))
          << one.ranks << " ranks, salt " << one.salt;
    }
  }
}

TEST_F(LocalCutTest, OnlyTheOwnerKnowsOfAnOverflow) {
  make_groups(3);
  const auto cut = std::make_shared<const Cut>(Parts{{{0, 2}, {8, 9}}, {{2, 5}}, {{5, 8}}});
  std::vector<WorkPtr> works;
  for (int rank = 0; rank < 3; ++rank) {
    const at::Tensor input = numbers(at::kFloat, 9, rank);
    input[3] = 3e38;
    works.push_back(groups_[rank]->reduce_scatter(input, at::zeros({3}, at::kFloat), cut, "scatter"));
  }
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(works[rank]->done() && works[rank]->finite(), rank != 1);
}

TEST_F(LocalCutTest, DifferentCutsOfOneSizeAreAnErrorThatNamesRanksOfTheWorld) {
  const auto world = LocalWorld::make(6);
  const auto a = world->factory(2)->make({2, 5}), b = world->factory(5)->make({2, 5});
  EXPECT_EQ(a->world_rank(1), 5);
  const auto mine = std::make_shared<const Cut>(Parts{{{0, 4}}, {{4, 8}}});
  const auto theirs = std::make_shared<const Cut>(Parts{{{4, 8}}, {{0, 4}}});
  const at::Tensor part = at::zeros({4}, at::kFloat);
  const WorkPtr early = a->all_gather(part, at::zeros({8}, at::kFloat), mine, "unit 3");
  const WorkPtr late = b->all_gather(part, {}, theirs, "unit 4");
  for (const WorkPtr* work : {&early, &late}) {
    try {
      (*work)->done();
      ADD_FAILURE() << "no error";
    } catch (const CollectiveError& error) {
      EXPECT_THAT(error.what(),
                  HasSubstr("rank 2 posted #0 all_gather of 32 bytes (unit 3), rank 5 posted #0 "
                            "all_gather of 32 bytes (unit 4), cut otherwise"));
    }
  }
}

TEST_F(LocalCutTest, TensorsMustFitTheCut) {
  make_groups(1);
  const auto cut = std::make_shared<const Cut>(Parts{{{2, 6}}});
  const at::Tensor part = at::zeros({4}, at::kFloat), whole = at::zeros({6}, at::kFloat);
  EXPECT_NO_THROW(groups_[0]->all_gather(part, whole, cut, "fits"));
  EXPECT_DEATH(groups_[0]->all_gather(part, part, cut, "short whole"), "beyond the whole");
  EXPECT_DEATH(groups_[0]->all_gather(whole.clone(), whole, cut, "long part"), "not as large as its cut");
  EXPECT_DEATH(groups_[0]->reduce_scatter(whole, part.to(at::kLong), cut, "another dtype"),
               "differ in dtype");
  EXPECT_DEATH(groups_[0]->all_gather(part, whole, Cut::even(2, 4), "two ranks"), "group of another size");
}

}  // namespace
}  // namespace tutti
