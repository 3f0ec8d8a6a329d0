#include "collectives/ordered_sum.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/collectives/reference_sum.h"

namespace tutti {
namespace {

std::vector<at::Tensor> numbers_of(int ranks, at::ScalarType dtype, int64_t count) {
  std::vector<at::Tensor> all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back(numbers(dtype, count, rank));
  return all;
}

std::vector<Summand> one_each(const std::vector<at::Tensor>& tensors) {
  std::vector<Summand> summands;
  for (int rank = 0; rank < static_cast<int>(tensors.size()); ++rank) {
    summands.push_back({{rank, rank + 1}, tensors[rank].const_data_ptr()});
  }
  return summands;
}

at::Tensor summed(const std::vector<Summand>& summands, at::ScalarType dtype, int64_t count) {
  at::Tensor out = at::empty({count}, dtype);
  void* const output = out.mutable_data_ptr();
  ordered_sum(dtype, summands, {&output, 1}, count);
  return out;
}

TEST(OrderedSumTest, FollowsTheDefinitionForEveryDtypeAndNumberOfRanks) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf, at::kInt, at::kLong}) {
    for (int ranks = 1; ranks <= 17; ++ranks) {
      for (const int64_t count : {1, 7, 4099}) {
        const auto all = numbers_of(ranks, dtype, count);
        EXPECT_TRUE(same_bits(summed(one_each(all), dtype, count), reference_sum(all)))
            << c10::toString(dtype) << ", " << ranks << " ranks, " << count;
      }
    }
  }
}

TEST(OrderedSumTest, OrderMattersForTheseNumbers) {
  auto all = numbers_of(4, at::kFloat, 1000);
  const at::Tensor in_order = summed(one_each(all), at::kFloat, 1000);
  std::swap(all[1], all[2]);
  EXPECT_FALSE(same_bits(in_order, summed(one_each(all), at::kFloat, 1000)));
}

TEST(OrderedSumTest, SumsOfSubtreesGiveTheSameBitsWhereverTheyWereMade) {
  constexpr int kRanks = 11;
  constexpr int64_t kCount = 3001;
  const auto all = numbers_of(kRanks, at::kFloat, kCount);
  const auto singles = one_each(all);
  for (int pattern = 0; pattern < 1 << kRanks; pattern += 37) {
    std::vector<at::Tensor> kept;
    std::vector<Summand> summands;
    const auto member = [&](int rank) { return (pattern >> rank & 1) != 0; };
    for (const RankRange& subtree : subtrees_within({0, kRanks}, member)) {
      const std::vector<Summand> inside(singles.begin() + subtree.begin, singles.begin() + subtree.end);
      kept.push_back(summed(inside, at::kFloat, kCount));
      summands.push_back({subtree, kept.back().const_data_ptr()});
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      if (!member(rank)) summands.push_back(singles[rank]);
    }
    std::sort(summands.begin(), summands.end(),
              [](const Summand& a, const Summand& b) { return a.ranks.begin < b.ranks.begin; });
    ASSERT_TRUE(same_bits(summed(summands, at::kFloat, kCount), reference_sum(all))) << pattern;
  }
}

TEST(OrderedSumTest, OutputsMayBeTheInputs) {
  auto all = numbers_of(5, at::kFloat, 10000);
  const at::Tensor expected = reference_sum(all);
  std::vector<void*> outputs;
  for (const at::Tensor& tensor : all) outputs.push_back(tensor.mutable_data_ptr());
  std::swap(outputs[0], outputs[3]);
  ordered_sum(at::kFloat, one_each(all), outputs, 10000);
  for (const at::Tensor& tensor : all) EXPECT_TRUE(same_bits(tensor, expected));
}

TEST(OrderedSumTest, SixteenBitFloatsRoundAsLibtorchDoes) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    at::Tensor a = at::empty({6}, at::kFloat);
    at::Tensor b = at::empty({6}, at::kFloat);
    const float left[] = {1, infinity, 65504, 1e-7f, 256, 3e38f};
    const float right[] = {0.00390625f, -infinity, 65504, 1e-8f, 1, 3e38f};
    std::copy_n(left, 6, a.mutable_data_ptr<float>());
    std::copy_n(right, 6, b.mutable_data_ptr<float>());
    const std::vector<at::Tensor> all = {a.to(dtype), b.to(dtype)};
    const at::Tensor sum = summed(one_each(all), dtype, 6).to(at::kFloat);
    const at::Tensor expected = reference_sum(all).to(at::kFloat);
    for (int i = 0; i < 6; ++i) {
      const float ours = sum.const_data_ptr<float>()[i];
      const float theirs = expected.const_data_ptr<float>()[i];
      EXPECT_TRUE(ours == theirs || (ours != ours && theirs != theirs)) << i << ": " << ours << " " << theirs;
    }
  }
}

TEST(OrderedSumTest, IntegersWrap) {
  const at::Tensor most = at::empty({3}, at::kInt).fill_(std::numeric_limits<int32_t>::max());
  const at::Tensor one = at::empty({3}, at::kInt).fill_(1);
  EXPECT_EQ(summed(one_each({most, one}), at::kInt, 3).const_data_ptr<int32_t>()[2],
            std::numeric_limits<int32_t>::min());
}

TEST(OrderedSumDeathTest, SummandsMustTileASubtree) {
  const auto all = numbers_of(3, at::kFloat, 4);
  const std::vector<Summand> gap = {{{0, 1}, all[0].const_data_ptr()}, {{2, 3}, all[2].const_data_ptr()}};
  EXPECT_DEATH(summed(gap, at::kFloat, 4), "tile a subtree");
}

}  // namespace
}  // namespace tutti
