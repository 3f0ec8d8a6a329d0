#include "tensors/finite.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tutti {
namespace {

TEST(Finite, OneBadElementAnywhereIsFound) {
  for (const int64_t size : {1, 7, 64, 1001}) {
    for (const int64_t at : {int64_t{0}, size / 2, size - 1}) {
      for (const float bad : {INFINITY, -INFINITY, NAN}) {
        at::Tensor values = at::randn({size});
        EXPECT_TRUE(all_finite(values));
        values[at] = bad;
        EXPECT_FALSE(all_finite(values)) << bad << " at " << at << " of " << size;
      }
    }
  }
}

TEST(Finite, LargeAndTinyNumbersAreFinite) {
  using Limits = std::numeric_limits<float>;
  EXPECT_TRUE(
      all_finite(at::tensor({Limits::max(), Limits::lowest(), Limits::min(), Limits::denorm_min(), 0.0f})));
  EXPECT_TRUE(all_finite(at::empty({0})));
}

TEST(Finite, AnyLayoutAndDtypeWillDo) {
  at::Tensor values = at::zeros({2, 3, 4, 4});
  values[1][2][3][3] = NAN;
  EXPECT_FALSE(all_finite(values.contiguous(at::MemoryFormat::ChannelsLast)));
  EXPECT_FALSE(all_finite(values.slice(3, 1)));
  EXPECT_TRUE(all_finite(values.slice(3, 0, 3)));
  EXPECT_FALSE(all_finite(at::full({}, NAN).expand({5})));
  EXPECT_FALSE(all_finite(values.to(at::kDouble)));
}

}  // namespace
}  // namespace tutti
