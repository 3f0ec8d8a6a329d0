#include "tests/golden/expect_near.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

double largest_of(const at::Tensor& tensor) { return tensor.abs().max().item<double>(); }

}  // namespace

void expect_near(const at::Tensor& got, const at::Tensor& wanted, double tolerance, const std::string& what) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  EXPECT_LE(largest_of(got - wanted), tolerance * largest_of(wanted)) << what;
}

void expect_gradients_near(Layer& model, const GoldenCase& golden) {
  constexpr double kRounding = 1e-2;
  const auto wanted = [&](const NamedParameter& one) { return golden.tensor("out/grads/" + one.name); };
  const auto all = parameters(model);
  double largest = 0;
  for (const NamedParameter& one : all) largest = std::max(largest, largest_of(wanted(one)));
  for (const NamedParameter& one : all) {
    const at::Tensor& got = one.parameter->tensor.grad();
    ASSERT_EQ(got.sizes(), wanted(one).sizes()) << one.name;
    EXPECT_LE(largest_of(got - wanted(one)),
              kOfGradients * std::max(largest_of(wanted(one)), kRounding * largest))
        << one.name;
  }
}

}  // namespace tutti
