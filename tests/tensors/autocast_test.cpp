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

// As a script or an exported program calls it, behind a layer of 16 bits. No processor has one of float16.
TEST(AutocastTest, AnLSTMWithoutKernelsComputesInFloat32) {
  const at::Tensor x = at::linspace(-1, 1, 24).view({2, 3, 4}), state = at::zeros({1, 2, 5});
  std::vector<at::Tensor> weights = {at::full({20, 4}, 0.1), at::full({20, 5}, 0.1), at::zeros({20}),
                                     at::zeros({20})};
  for (at::Tensor& weight : weights) weight.requires_grad_();
  const auto outputs = [&](const at::Tensor& input) {
    return std::get<0>(at::lstm(input, {state, state}, weights, true, 1, 0.0, true, false, true));
  };
  const at::Tensor exact = outputs(x.to(at::kHalf).to(at::kFloat));
  const AutocastScope scope(at::kHalf);
  const at::Tensor found = outputs(x.to(at::kHalf));
  EXPECT_TRUE(at::equal(found, exact));
  found.sum().backward();
  EXPECT_EQ(weights[0].grad().scalar_type(), at::kFloat);
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
