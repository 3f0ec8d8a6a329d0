#include "tensors/finite.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tutti {
namespace {

TEST(Finite, OneBadElementAnywhereIsFound) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    for (const int64_t size : {1, 7, 64, 1001}) {
      for (const int64_t at : {int64_t{0}, size / 2, size - 1}) {
        for (const float bad : {INFINITY, -INFINITY, NAN, -NAN}) {
          at::Tensor values = at::randn({size}).to(dtype);
          EXPECT_TRUE(all_finite(values));
          values[at] = bad;
          EXPECT_FALSE(all_finite(values)) << bad << " at " << at << " of " << size;
        }
      }
    }
  }
}

TEST(Finite, LargeAndTinyNumbersAreFinite) {
  using Limits = std::numeric_limits<float>;
  EXPECT_TRUE(
      all_finite(at::tensor({Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(), 0.0f})));
  EXPECT_TRUE(all_finite(at::empty({0})));
  EXPECT_TRUE(all_finite(at::tensor({65504.0F, -65504.0F}).to(at::kHalf)));
  EXPECT_TRUE(all_finite(at::tensor({3.3e38F, -3.3e38F}).to(at::kBFloat16)));
  EXPECT_TRUE(all_finite(at::tensor({std::numeric_limits<double>::max()}, at::kDouble)));
  EXPECT_TRUE(all_finite(at::full({3}, -1, at::kLong)));
}

TEST(Finite, AnyLayoutAndDtypeWillDo) {
  at::Tensor values = at::zeros({2, 3, 4, 4});
  values[1][2][3][3] = NAN;
  EXPECT_FALSE(all_finite(values.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(all_finite(values.slice(3, 1)));
  EXPECT_TRUE(all_finite(values.slice(3, 0, 3)));
  EXPECT_FALSE(all_finite(at::full({}, NAN).expand({5})));
  EXPECT_FALSE(all_finite(values.to(at::kDouble)));
  EXPECT_FALSE(gradient_is_finite(values));
}

// dW = dY^T X of a linear layer.
at::Tensor weight_gradient(const at::Tensor& output_gradient, const at::Tensor& input) {
  return output_gradient.t().matmul(input);
}

TEST(Finite, NonFiniteInputsShowInALargeGradient) {
  const at::Tensor input = at::randn({4, 700}), output_gradient = at::randn({4, 600});
  ASSERT_GT(input.size(1) * output_gradient.size(1), kReadWhole);
  EXPECT_TRUE(gradient_is_finite(weight_gradient(output_gradient, input)));
  for (const float bad : {INFINITY, NAN}) {
    at::Tensor bad_input = input.clone(), bad_gradient = output_gradient.clone();
    bad_input[2][333] = bad_gradient[3][444] = bad;
    EXPECT_FALSE(gradient_is_finite(weight_gradient(output_gradient, bad_input)));
    EXPECT_FALSE(gradient_is_finite(weight_gradient(bad_gradient, input)));
    at::Tensor kernel = at::zeros({300, 300, 3, 3}).contiguous(at::MemoryFormat::ChannelsLast);
    kernel.select(0, 299).fill_(bad);
    EXPECT_FALSE(gradient_is_finite(kernel));
  }
}

}  // namespace
}  // namespace tutti
