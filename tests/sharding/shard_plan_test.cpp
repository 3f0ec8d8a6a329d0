#include "sharding/shard_plan.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti {
namespace {

using testing::ElementsAre;

std::vector<at::Tensor> tensors() {
  return {at::arange(21, at::kFloat).view({7, 3}), at::full({}, 5.0F), at::arange(2, at::kFloat),
          at::arange(48, at::kFloat).view({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast)};
}

std::vector<ParamView> views_of_all(const std::vector<at::Tensor>& all) {
  std::vector<ParamView> views;
  for (const at::Tensor& tensor : all) views.push_back(whole_view("p", tensor));
  return views;
}

// Each rank's rows after a reduce-scatter of the whole, by name of the parameter.
void expect_rows(int pieces) {
  const auto all = tensors();
  const Bucket bucket = plan_buckets(all, 1 << 20).buckets.at(0);
  const at::Tensor memory = at::zeros({bucket.bytes}, at::kByte);
  for (const BucketSlot& slot : bucket.slots)
    slot_view(memory, bucket, slot, all[slot.parameter]).copy_(all[slot.parameter]);
  const at::Tensor whole = memory.view(at::kFloat);
  const auto views = views_of_all(all);
  const CutPtr cut = cut_by_rows(bucket, all, views, pieces);
  for (int rank = 0; rank < pieces; ++rank) {
    const Share share{pieces, rank};
    const at::Tensor part = at::empty({cut->part_size(rank)});
    for (const CutRun& run : cut->runs(rank))
      part.narrow(0, run.part, run.count).copy_(whole.narrow(0, run.whole, run.count));
    std::vector<at::Tensor> rows(all.size());
    RowsOfRank(bucket, all, views, share, RowsOfRank::In::kPart).take(part, rows);
    std::vector<at::Tensor> in_whole(all.size());
    RowsOfRank(bucket, all, views, share, RowsOfRank::In::kWhole).take(whole, in_whole);
    for (std::size_t p = 0; p < all.size(); ++p) {
      if (all[p].dim() == 0) {
        EXPECT_EQ(rows[p].item<float>(), rank == 0 ? 5 : 0);
        continue;
      }
      const TensorRegion own = region_of(all[p].sizes(), views[p].placement, share);
      EXPECT_TRUE(rows[p].equal(narrowed(all[p], own))) << p << " of rank " << rank;
      EXPECT_EQ(rows[p].strides(), all[p].strides());
      EXPECT_TRUE(in_whole[p].equal(rows[p]) && in_whole[p].strides() == rows[p].strides());
    }
  }
}

TEST(ShardPlan, CutsEveryParameterByItsRows) {
  for (const int pieces : {1, 2, 3, 4, 8}) expect_rows(pieces);
}

TEST(ShardPlan, LeavesFrozenParametersOutAndOthersAtTheirPlaces) {
  const auto all = tensors();
  const Bucket whole = plan_buckets(all, 1 << 20).buckets.at(0);
  const Bucket bucket = with_only(whole, {true, false, false, true});
  const auto views = views_of_all(all);
  const CutPtr cut = cut_by_rows(bucket, all, views, 2);
  EXPECT_EQ(cut->size(), 48 + 21);
  EXPECT_EQ(cut->extent(), cut_by_rows(whole, all, views, 2)->extent());
  std::vector<at::Tensor> rows(all.size());
  const RowsOfRank place(bucket, all, views, {2, 0}, RowsOfRank::In::kPart);
  place.take(at::zeros({cut->part_size(0)}), rows);
  EXPECT_TRUE(rows[3].defined() && rows[0].defined());
  EXPECT_FALSE(rows[1].defined() || rows[2].defined());
  EXPECT_EQ(place.parts({"a", "b", "c", "d"}).size(), 2U);
}

TEST(ShardPlan, NamesTheBytesOfAPart) {
  const auto all = tensors();
  const Bucket bucket = plan_buckets(all, 1 << 20).buckets.at(0);
  const auto found = [&](RowsOfRank::In in) {
    std::vector<std::string> texts;
    for (const auto& part :
         RowsOfRank(bucket, all, views_of_all(all), {4, 1}, in).parts({"a", "b", "c", "d"}))
      texts.push_back(part.name + " " + std::to_string(part.begin) + " " + std::to_string(part.end));
    return texts;
  };
  EXPECT_THAT(found(RowsOfRank::In::kPart), ElementsAre("d 0 48", "c 48 52", "a 52 76"));
  EXPECT_THAT(found(RowsOfRank::In::kWhole), ElementsAre("d 48 96", "c 196 200", "a 344 368"));
}

TEST(ShardPlan, CutsNoOtherPlacementThanRows) {
  const auto all = tensors();
  const Bucket bucket = plan_buckets(all, 1 << 20).buckets.at(0);
  auto views = views_of_all(all);
  views[0].placement.axes[1].dim = 1;
  EXPECT_DEATH(cut_by_rows(bucket, all, views, 2), "cut by rows of dim 0 alone");
}

TEST(ShardPlan, RefusesRowsThatAreNotOutermost) {
  EXPECT_TRUE(can_cut(at::zeros({4, 3})));
  EXPECT_TRUE(can_cut(at::zeros({4, 3, 2, 2}).contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_TRUE(can_cut(at::zeros({})));
  EXPECT_FALSE(can_cut(at::zeros({4, 3}).t()));
}

}  // namespace
}  // namespace tutti
