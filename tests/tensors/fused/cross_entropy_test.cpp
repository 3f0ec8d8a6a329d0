#include "tensors/fused/cross_entropy.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "runtime/error.h"
#include "tensors/kernels/cross_entropy.h"

namespace tutti {
namespace {

constexpr int64_t kIgnored = -100;

class CrossEntropyOfRows : public testing::TestWithParam<at::ScalarType> {
 protected:
  CrossEntropyOfRows() {
    at::manual_seed(3);
    scores_ = (at::randn({6, 1501}) * 5).to(GetParam()).requires_grad_();
    target_ = at::tensor({0L, 7L, 1500L, kIgnored, 3L, 3L});
  }
  // Of float64 numbers.
  at::Tensor expected(const at::Tensor& scores) const {
    return at::cross_entropy_loss(scores, target_, {}, at::Reduction::None, kIgnored);
  }
  double tolerance() const { return GetParam() == at::kFloat ? 1e-5 : GetParam() == at::kHalf ? 1e-3 : 8e-3; }

  at::Tensor scores_, target_;
};
INSTANTIATE_TEST_SUITE_P(Types, CrossEntropyOfRows, testing::Values(at::kFloat, at::kHalf, at::kBFloat16));

TEST_P(CrossEntropyOfRows, IsTorchsInFloat32) {
  const at::Tensor losses = cross_entropy_of_rows(scores_, target_, kIgnored);
  EXPECT_EQ(losses.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(losses.to(at::kDouble), expected(scores_.detach().to(at::kDouble)), 1e-5, 1e-5));
}

TEST_P(CrossEntropyOfRows, HasTorchsGradientInTheScoresType) {
  const at::Tensor factors = at::randn({6});
  cross_entropy_of_rows(scores_, target_, kIgnored).backward(factors);
  const at::Tensor wide = scores_.detach().to(at::kDouble).requires_grad_();
  expected(wide).backward(factors.to(at::kDouble));
  EXPECT_EQ(scores_.grad().scalar_type(), GetParam());
  EXPECT_TRUE(at::allclose(scores_.grad().to(at::kDouble), wide.grad(), tolerance(), 1e-6));
  EXPECT_TRUE(scores_.grad()[3].eq(0).all().item<bool>()) << "ignored";
}

TEST(CrossEntropyOfSomeRows, ScoresThatExcludeAClassAreNoNaN) {
  const double none = -std::numeric_limits<double>::infinity();
  const at::Tensor scores = at::tensor({none, 1.0, none, 2.0}, at::kFloat).view({1, 4}).requires_grad_();
  const at::Tensor loss = cross_entropy_of_rows(scores, at::tensor({3L}), kIgnored).sum();
  EXPECT_NEAR(loss.item<double>(), std::log1p(std::exp(-1.0)), 1e-6);
  loss.backward();
  EXPECT_TRUE(scores.grad().isfinite().all().item<bool>());
}

TEST(CrossEntropyOfSomeRows, AnIndexBeyondTheClassesIsAnError) {
  const at::Tensor scores = at::zeros({2, 4});
  EXPECT_THROW(cross_entropy_of_rows(scores, at::tensor({1L, 4L}), kIgnored), UserError);
  EXPECT_THROW(cross_entropy_of_rows(scores, at::tensor({-1L, 3L}), kIgnored), UserError);
}

// libtorch's own on CPUs, and where there are few classes.
TEST(CrossEntropyOfSomeRows, IsForDevicesThatHaveAKernelOfIt) {
  EXPECT_FALSE(has_cross_entropy_of_rows(at::zeros({2, 5000}), at::tensor({1L, 4L})));
}

TEST(ExpSums, PartsJoinedAreTheWhole) {
  ExpSum all, first, second, none;
  const std::vector<float> numbers{3.0F, -200.0F, 88.0F, 87.5F, -INFINITY};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    all.add(numbers[i]);
    (i < 2 ? first : second).add(numbers[i]);
  }
  none.join(first);
  none.join(second);
  none.join({});
  EXPECT_FLOAT_EQ(none.log(), all.log());
  EXPECT_FLOAT_EQ(all.log(), 88.0F + std::log1p(std::exp(-0.5F)));
  EXPECT_EQ(ExpSum().log(), -INFINITY);
}

// As kernels add what they read at once.
TEST(ExpSums, SeveralNumbersAtOnceAreAsOneAfterTheOther) {
  const float none = -INFINITY, no_number = std::numeric_limits<float>::quiet_NaN();
  const auto log_of = [](const float(&numbers)[4]) {
    ExpSum at_once, in_turn;
    at_once.add(1.0F);
    at_once.add(numbers);
    for (const float x : {1.0F, numbers[0], numbers[1], numbers[2], numbers[3]}) in_turn.add(x);
    EXPECT_TRUE(at_once.log() == in_turn.log() || std::isnan(in_turn.log()));
    return at_once.log();
  };
  EXPECT_FLOAT_EQ(log_of({none, 89.0F, none, 88.0F}), 89.0F + std::log1p(std::exp(-1.0F)));
  EXPECT_FLOAT_EQ(log_of({none, none, none, none}), 1.0F);
  EXPECT_TRUE(std::isnan(log_of({2.0F, no_number, 3.0F, none})));
  EXPECT_TRUE(std::isnan(log_of({no_number, none, no_number, none}))) << "where no number is finite";
  EXPECT_TRUE(std::isnan(log_of({2.0F, INFINITY, 3.0F, none}))) << "as libtorch's";
}

}  // namespace
}  // namespace tutti
