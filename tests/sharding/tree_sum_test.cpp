#include "sharding/tree_sum.h"

#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <vector>

#include "collectives/ordered_sum.h"

namespace tutti {
namespace {

at::Tensor sum_of(const std::vector<at::Tensor>& values) {
  TreeSum sum(1);
  at::Tensor whole;
  for (std::size_t i = 0; i < values.size(); ++i)
    whole = sum.add(0, static_cast<int64_t>(i), values[i].defined() ? values[i].clone() : values[i],
                    i + 1 == values.size());
  return whole;
}

// As ranks add them.
at::Tensor ordered(const std::vector<at::Tensor>& values) {
  std::vector<Summand> summands;
  for (int i = 0; i < static_cast<int>(values.size()); ++i)
    summands.push_back({{i, i + 1}, values[static_cast<std::size_t>(i)].data_ptr()});
  const at::Tensor out = at::zeros_like(values.front());
  void* const to = out.data_ptr();
  ordered_sum(out.scalar_type(), summands, {&to, 1}, out.numel());
  return out;
}

TEST(TreeSum, HasTheBitsOfTheSumOverRanks) {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const int count : {1, 2, 4, 8, 32}) {
      std::vector<at::Tensor> values;
      for (int i = 0; i < count; ++i) values.push_back(at::rand({100}).to(dtype));
      EXPECT_TRUE(sum_of(values).equal(ordered(values))) << count << ' ' << dtype;
    }
}

// Whoever adds which part: a rank its neighbours first, or ranks first.
TEST(TreeSum, HasOneResultForAnyCut) {
  std::vector<at::Tensor> values;
  for (int i = 0; i < 16; ++i) values.push_back(at::rand({100}));
  const at::Tensor whole = sum_of(values);
  for (const std::size_t ranks : {2, 4, 8, 16}) {
    const std::size_t each = values.size() / ranks;
    std::vector<at::Tensor> of_ranks, of_portions;
    for (std::size_t rank = 0; rank < ranks; ++rank)
      of_ranks.push_back(sum_of({values.begin() + static_cast<int64_t>(rank * each),
                                 values.begin() + static_cast<int64_t>((rank + 1) * each)}));
    for (std::size_t portion = 0; portion < each; ++portion)
      of_portions.push_back(ordered({values.begin() + static_cast<int64_t>(portion * ranks),
                                     values.begin() + static_cast<int64_t>((portion + 1) * ranks)}));
    EXPECT_TRUE(ordered(of_ranks).equal(whole)) << ranks;
    EXPECT_TRUE(sum_of(of_portions).equal(whole)) << ranks;
  }
}

TEST(TreeSum, AMissingValueChangesNoBit) {
  const at::Tensor value = at::tensor({0.0F, -0.0F, 1.5F, -2.0F});
  const at::Tensor nothing = at::zeros({4});
  fill_with_nothing(nothing);
  const auto same_bits = [&](const at::Tensor& other) {
    return other.view(at::kInt).equal(value.view(at::kInt));
  };
  EXPECT_TRUE(same_bits(sum_of({{}, value, {}, {}})));
  EXPECT_TRUE(same_bits(sum_of({value, {}, {}, {}})));
  EXPECT_TRUE(same_bits(ordered({nothing, value, nothing})));
  EXPECT_TRUE(same_bits(ordered({value, nothing, nothing, nothing, nothing})));
  EXPECT_FALSE(sum_of({{}, {}}).defined());
}

TEST(TreeSum, ForgetsACutShortSum) {
  TreeSum sum(1);
  sum.add(0, 0, at::tensor({1.0F}), false);
  sum.clear();
  sum.add(0, 0, at::tensor({2.0F}), false);
  EXPECT_EQ(sum.add(0, 1, at::tensor({3.0F}), true).item<float>(), 5.0F);
}

}  // namespace
}  // namespace tutti
