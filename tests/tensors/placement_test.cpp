#include "tensors/placement.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using enum AxisPlacement::Kind;
using testing::ElementsAre;

TEST(Placement, PiecesCoverEveryIndexOnce) {
  for (const int64_t size : {0, 1, 5, 8, 9, 1000})
    for (const int64_t dim : {0, 1, 2})
      for (const int pieces : {1, 2, 3, 4, 8}) {
        Shape shape = {2, 3, 4};
        shape[dim] = size;
        int64_t next = 0;
        for (int i = 0; i < pieces; ++i) {
          const TensorRegion piece = split(whole_region(shape), dim, {pieces, i});
          EXPECT_EQ(piece.offset[dim], next);
          EXPECT_GE(piece.extent[dim], 0);
          next += piece.extent[dim];
          TensorRegion others = piece;
          others.offset[dim] = 0;
          others.extent[dim] = size;
          EXPECT_EQ(others, whole_region(shape)) << "another dimension is split";
        }
        EXPECT_EQ(next, size);
      }
}

TEST(Placement, FirstPiecesAreFullAndTheLastOnesShortOrEmpty) {
  std::vector<int64_t> rows;
  for (int i = 0; i < 4; ++i) rows.push_back(split(whole_region({5}), 0, {4, i}).extent[0]);
  EXPECT_THAT(rows, ElementsAre(2, 2, 1, 0));
}

TEST(Placement, OfAParameterSplitsRowsAndNoScalar) {
  const Share share{.pieces = 2, .index = 1, .replicas = 3, .replica = 2};
  EXPECT_EQ(region_of({5, 3}, row_placement({5, 3}), share), (TensorRegion{{3, 0}, {2, 3}}));
  EXPECT_EQ(region_of({}, row_placement({}), share), TensorRegion());
  EXPECT_TRUE(row_placement({5, 3}).has_whole_rows());
}

TEST(Placement, SplitsAnyDimensionOnAnyAxis) {
  const Share share{.pieces = 2, .index = 1, .replicas = 3, .replica = 2};
  EXPECT_EQ(region_of({5, 7}, {.axes = {{{}, {kSplit, 1}}}}, share), (TensorRegion{{0, 4}, {5, 3}}));
  EXPECT_EQ(region_of({5, 7}, {.axes = {{{kSplit, 1}, {kSplit, 0}}}}, share), (TensorRegion{{3, 6}, {2, 1}}));
  // On both axes at one dimension: the second splits the piece of the first, 3 of 9.
  EXPECT_EQ(region_of({9}, {.axes = {{{kSplit, 0}, {kSplit, 0}}}}, share), (TensorRegion{{8}, {1}}));
  EXPECT_EQ(region_of({5, 7}, {.axes = {{{kPartialSum}, {}}}}, share), whole_region({5, 7}));
  EXPECT_FALSE((Placement{.axes = {{{}, {kSplit, 1}}}}.has_whole_rows()));
}

// Every number is in as many regions as a region has copies, and the copies are counted in order.
TEST(Placement, RegionsAndCopiesCoverATensor) {
  for (const Placement& placement :
       {Placement(), row_placement({5, 7}), Placement{.axes = {{{kSplit, 1}, {}}}},
        Placement{.axes = {{{}, {kSplit, 1}}}}, Placement{.axes = {{{kSplit, 1}, {kSplit, 0}}}},
        Placement{.axes = {{{kSplit, 0}, {kSplit, 0}}}}}) {
    const at::Tensor copies = at::zeros({5, 7}, at::kLong), indices = at::zeros({5, 7}, at::kLong);
    int64_t size = 0;
    for (int rank = 0; rank < 6; ++rank) {
      const Share share{.pieces = 2, .index = rank % 2, .replicas = 3, .replica = rank / 2};
      const TensorRegion region = region_of({5, 7}, placement, share);
      const AxisRank copy = copy_of(placement, share);
      size = copy.size;
      EXPECT_TRUE(narrowed(indices, region).eq(copy.index).all().item<bool>()) << rank;
      narrowed(copies, region).add_(1);
      narrowed(indices, region).add_(1);
    }
    EXPECT_TRUE(copies.eq(size).all().item<bool>());
  }
}

TEST(Placement, OfAMeanIsReplicatedWhereItsDimensionWasSplit) {
  const Placement rows = row_placement({5, 7});
  EXPECT_EQ(rows.mean_over(1), rows);
  EXPECT_EQ(rows.mean_over(0), Placement());
}

TEST(Placement, OfAPartialSumHasNoCopies) {
  EXPECT_DEATH(copy_of({.axes = {{{kPartialSum}, {}}}}, {}), "different summands");
}

}  // namespace
}  // namespace tutti
