#include "algorithms/surgery/channels_last.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "algorithms/surgery/blurpool.h"
#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/norm.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

Sequential small_net() {
  return Sequential({std::make_shared<Conv2d>(Conv2dOptions{
                         .in_channels = 16, .out_channels = 8, .kernel_size = 3, .stride = 2, .bias = true}),
                     std::make_shared<BatchNorm2d>(8), std::make_shared<ReLU>(),
                     std::make_shared<Conv2d>(Conv2dOptions{.in_channels = 8, .out_channels = 8})});
}

TEST(ChannelsLastTest, ActivationsFollowTheWeights) {
  Sequential net = small_net(), plain = small_net();
  EXPECT_EQ(apply_channels_last(net), 2);
  materialise(net, 3);
  materialise(plain, 3);
  const at::Tensor images = at::randn({2, 16, 9, 9});
  int laid_out = 0;
  std::vector<Slot::Hook> hooks;
  for (const auto& slot : net.slots())
    hooks.push_back(slot->after([&](const TensorTree&, TensorTree output) {
      laid_out += output.tensor().is_contiguous(at::MemoryFormat::ChannelsLast);
      return output;
    }));
  const at::Tensor y = net.forward(images).tensor();
  EXPECT_EQ(laid_out, 4);
  EXPECT_TRUE(at::allclose(y, plain.forward(images).tensor(), 1e-4, 1e-5));
}

TEST(ChannelsLastTest, TensorsWithValuesKeepThemAndWhoHoldsThem) {
  Sequential net = small_net();
  materialise(net, 3);
  const at::Tensor held = parameters(net)[0].parameter->tensor, values = held.detach().clone();
  apply_channels_last(net);
  EXPECT_TRUE(parameters(net)[0].parameter->tensor.is_same(held));
  EXPECT_TRUE(held.requires_grad() && held.is_leaf());
  EXPECT_TRUE(held.is_contiguous(at::MemoryFormat::ChannelsLast) && held.equal(values));
}

TEST(ChannelsLastTest, BuffersAndKernelsOfOneChannelAreLaidOutAsByTorch) {
  Sequential net = small_net();
  apply_blurpool(net);
  apply_channels_last(net);
  materialise(net, 3);
  EXPECT_EQ(buffers(net)[0].buffer->tensor.strides(), at::IntArrayRef({9, 1, 3, 1}));
  EXPECT_EQ(parameters(net)[4].parameter->tensor.strides(), at::IntArrayRef({8, 1, 8, 8}));
}

TEST(ChannelsLastTest, KernelsOfThreeDimensionsStay) {
  Sequential net({std::make_shared<Conv3d>(Conv3dOptions{.in_channels = 2, .out_channels = 2})});
  EXPECT_EQ(apply_channels_last(net), 0);
}

TEST(ChannelsLastTest, LayersOfOtherSurgeryAreLaidOutToo) {
  State state;
  Logger logger;
  class Whole final : public Model {
   public:
    Whole() : net_(add_slot("net", std::make_shared<MaxPool2d>(2, 2))) {}
    TensorTree forward(const Batch& batch) override { return net_(batch["input"]); }
    at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
    const char* kind() const override { return "Whole"; }

   private:
    Slot& net_;
  };
  state.model = std::make_shared<Whole>();
  Engine engine(state, logger,
                {.algorithms = {std::make_shared<ChannelsLast>(), std::make_shared<BlurPool>()}});
  engine.run_event(Event::kInit);
  materialise(*state.model, 1);
  EXPECT_EQ(buffers(*state.model)[0].buffer->tensor.strides(), at::IntArrayRef({9, 1, 3, 1}));
}

}  // namespace
}  // namespace tutti
