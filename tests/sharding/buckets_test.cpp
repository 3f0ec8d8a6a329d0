#include "sharding/buckets.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/collectives/reference_sum.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

std::vector<std::size_t> parameters_in(const Bucket& bucket) {
  std::vector<std::size_t> indices;
  for (const BucketSlot& slot : bucket.slots) indices.push_back(slot.parameter);
  return indices;
}

at::Tensor floats(int64_t count) { return at::zeros({count}, at::kFloat); }

at::Tensor channels_last_weight() {
  return numbers(at::kFloat, 4 * 3 * 5 * 5, 0).view({4, 3, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast);
}

TEST(BucketsTest, TheLastParametersComeFirst) {
  const auto plan = plan_buckets({floats(100), floats(100), floats(100)}, 1024);
  ASSERT_THAT(plan.buckets, SizeIs(2));
  EXPECT_THAT(parameters_in(plan.buckets[0]), ElementsAre(2, 1));
  EXPECT_THAT(parameters_in(plan.buckets[1]), ElementsAre(0));
}

TEST(BucketsTest, EverySlotAndEveryBucketEndsOnACacheLine) {
  const auto plan = plan_buckets({floats(3), floats(17), floats(1)}, 1024);
  ASSERT_THAT(plan.buckets, SizeIs(1));
  EXPECT_EQ(plan.buckets[0].bytes, 4 * 64);
  EXPECT_EQ(plan.buckets[0].slots[0].offset, 0);
  EXPECT_EQ(plan.buckets[0].slots[1].offset, 16);
  EXPECT_EQ(plan.buckets[0].slots[2].offset, 48);
}

TEST(BucketsTest, ALargeParameterIsABucketOfItsOwn) {
  const auto plan = plan_buckets({floats(10), floats(5000), floats(10)}, 1024);
  ASSERT_THAT(plan.buckets, SizeIs(3));
  EXPECT_THAT(parameters_in(plan.buckets[1]), ElementsAre(1));
}

TEST(BucketsTest, ABucketHasOneDtype) {
  const auto plan = plan_buckets({floats(8), floats(8).to(at::kHalf), floats(8).to(at::kHalf)}, 1024);
  ASSERT_THAT(plan.buckets, SizeIs(2));
  EXPECT_EQ(plan.buckets[0].dtype, at::kHalf);
  EXPECT_THAT(parameters_in(plan.buckets[0]), ElementsAre(2, 1));
  EXPECT_EQ(plan.buckets[1].dtype, at::kFloat);
}

TEST(BucketsTest, AViewHasItsParametersStrides) {
  const at::Tensor weight = channels_last_weight();
  const auto plan = plan_buckets({weight, floats(3)}, 1 << 20);
  const Bucket& bucket = plan.buckets[0];
  const at::Tensor memory = at::zeros({bucket.bytes}, at::kByte);
  const at::Tensor view = slot_view(memory, bucket, bucket.slots[1], weight);
  EXPECT_EQ(view.strides(), weight.strides());
  view.copy_(weight);
  EXPECT_TRUE(view.equal(weight));
  EXPECT_TRUE(memory.view(at::kFloat).narrow(0, 0, 16).eq(0).all().item<bool>());
}

// The fused optimizers walk gradient and parameter side by side in memory.
TEST(BucketsTest, TheFusedOptimizerReadsAChannelsLastGradientRight) {
  const at::Tensor weight = channels_last_weight();
  const auto plan = plan_buckets({weight}, 1 << 20);
  const at::Tensor memory = at::zeros({plan.buckets[0].bytes}, at::kByte);
  const at::Tensor grad = slot_view(memory, plan.buckets[0], plan.buckets[0].slots[0], weight);
  grad.copy_(numbers(at::kFloat, weight.numel(), 1).view(weight.sizes()));
  const at::Tensor expected = weight - grad * 0.5;
  const at::Tensor momentum = at::zeros_like(weight);
  at::_fused_sgd_({weight}, {grad}, {momentum}, 0.0, 0.9, 0.5, 0.0, false, false, true);
  EXPECT_TRUE(weight.allclose(expected, 1e-6, 1e-6));
}

}  // namespace
}  // namespace tutti
