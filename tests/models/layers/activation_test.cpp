#include "models/layers/activation.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/zoo/activation_names.h"

namespace tutti {
namespace {

TEST(Activations, GeluIsExactAndGeluTanhItsApproximation) {
  const at::Tensor x = at::linspace(-4, 4, 101);
  const auto of = [&](const std::string& name) { return make_activation(name)->forward(x).tensor(); };
  EXPECT_TRUE(of("gelu").equal(at::gelu(x, "none")));
  for (const char* name : {"gelu_tanh", "gelu_new"}) EXPECT_TRUE(of(name).equal(at::gelu(x, "tanh"))) << name;
  EXPECT_TRUE(GELU().forward(x).tensor().equal(at::gelu(x, "none")));
}

TEST(Activations, AreMadeOfEveryNameThatOptionsTake) {
  for (const std::string& name : activation_names()) EXPECT_NE(make_activation(name), nullptr) << name;
  EXPECT_EQ(make_activation("gelus"), nullptr);
}

}  // namespace
}  // namespace tutti
