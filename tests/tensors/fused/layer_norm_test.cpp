#include "tensors/fused/layer_norm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <functional>

#include "tensors/autograd.h"

namespace tutti {
namespace {

struct Net {
  Net() {
    at::manual_seed(4);
    x = (at::randn({3, 5, 12}) * 2 + 1).requires_grad_();
    weight = at::randn({12}).requires_grad_();
    bias = at::randn({12}).requires_grad_();
  }
  at::Tensor x, weight, bias;
};

class NarrowLayerNorms : public testing::TestWithParam<at::ScalarType> {};
INSTANTIATE_TEST_SUITE_P(Types, NarrowLayerNorms, testing::Values(at::kHalf, at::kBFloat16));

TEST_P(NarrowLayerNorms, AreTorchsCastToAutocastsType) {
  const AutocastScope autocast(GetParam());
  const auto run = [](const std::function<at::Tensor(const Net&)>& norm) {
    const Net net;
    const at::Tensor out = norm(net);
    out.backward(at::linspace(-1, 1, out.numel()).view(out.sizes()).to(out.scalar_type()));
    return std::vector<at::Tensor>{out.detach(), net.x.grad(), net.weight.grad(), net.bias.grad()};
  };
  const auto own = run([](const Net& net) { return narrow_layer_norm(net.x, net.weight, net.bias, 0.1); });
  const auto torchs = run(
      [](const Net& net) { return at::layer_norm(net.x, {12}, net.weight, net.bias, 0.1).to(GetParam()); });
  EXPECT_EQ(own[0].scalar_type(), GetParam());
  for (std::size_t i = 0; i < own.size(); ++i) EXPECT_TRUE(own[i].equal(torchs[i])) << i;
}

TEST(NarrowLayerNorm, IsForDevicesUnderAutocast) {
  const Net net;
  EXPECT_FALSE(has_narrow_layer_norm(net.x, net.weight));
  const AutocastScope autocast(at::kBFloat16);
  EXPECT_FALSE(has_narrow_layer_norm(net.x, net.weight)) << "the CPU has no kernel of its own";
}

}  // namespace
}  // namespace tutti
