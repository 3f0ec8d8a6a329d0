#include <ATen/ATen.h>
#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>

#include <thread>

#include "tensors/autograd.h"

namespace tutti {
namespace {

at::ScalarType computed_in() {
  const at::Tensor ones = at::ones({2, 2});
  return ones.matmul(ones).scalar_type();
}

TEST(AutocastTest, ProductsAreInTheDtypeAskedForAndLossesInFloat32) {
  for (const auto dtype : {at::kBFloat16, at::kHalf}) {
    const AutocastScope scope(dtype);
    EXPECT_EQ(computed_in(), dtype);
    const at::Tensor scores = at::ones({2, 3}, dtype);
    EXPECT_EQ(at::cross_entropy_loss(scores, at::zeros({2}, at::kLong)).scalar_type(), at::kFloat);
  }
}

TEST(AutocastTest, EndsWithItsScope) {
  const auto before = at::autocast::get_autocast_dtype(at::kCPU);
  {
    const AutocastScope outer(at::kHalf);
    {
      const AutocastScope none(std::nullopt);
      EXPECT_EQ(computed_in(), at::kFloat);
    }
    EXPECT_EQ(computed_in(), at::kHalf);
  }
  EXPECT_EQ(computed_in(), at::kFloat);
  EXPECT_EQ(at::autocast::get_autocast_dtype(at::kCPU), before);
}

TEST(AutocastTest, EndsWithAnException) {
  try {
    const AutocastScope scope(at::kHalf);
    throw 1;
  } catch (int) {
  }
  EXPECT_EQ(computed_in(), at::kFloat);
}

TEST(AutocastTest, IsThisThreadsAlone) {
  const AutocastScope scope(at::kBFloat16);
  at::ScalarType elsewhere = at::kBFloat16;
  std::thread([&] { elsewhere = computed_in(); }).join();
  EXPECT_EQ(elsewhere, at::kFloat);
}

// libtorch keeps cast weights by their address, for all threads.
TEST(AutocastTest, AWeightThatChangedIsCastAnew) {
  at::Tensor weight = at::ones({1, 1}).requires_grad_();
  const AutocastScope scope(at::kBFloat16);
  const at::Tensor input = at::ones({1, 1});
  EXPECT_EQ(input.matmul(weight).item<float>(), 1);
  {
    const at::NoGradGuard no_grad;
    weight.fill_(2);
  }
  EXPECT_EQ(input.matmul(weight).item<float>(), 2);
}

}  // namespace
}  // namespace tutti
