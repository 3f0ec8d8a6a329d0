#include "models/layers/layer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/layers/linear.h"
#include "models/layers/norm.h"

namespace tutti {
namespace {

using Layers = std::vector<std::shared_ptr<Layer>>;

std::shared_ptr<Sequential> nested() {
  return std::make_shared<Sequential>(Layers{
      std::make_shared<Linear>(3, 4),
      std::make_shared<Sequential>(Layers{std::make_shared<ReLU>(), std::make_shared<Linear>(4, 2, false)})});
}

std::vector<std::string> parameter_names(Layer& root) {
  std::vector<std::string> names;
  for (const NamedParameter& named : parameters(root)) names.push_back(named.name);
  return names;
}

TEST(Layer, ParametersAreNamedByPathInOrderOfRegistration) {
  EXPECT_THAT(parameter_names(*nested()), testing::ElementsAre("0.weight", "0.bias", "1.1.weight"));
}

TEST(Layer, WalkNamesEverySlotAndLayer) {
  const auto root = nested();
  std::vector<std::string> names;
  for (const NamedSlot& named : slots(*root)) names.push_back(named.name);
  EXPECT_THAT(names, testing::UnorderedElementsAre("0", "1", "1.0", "1.1"));
  EXPECT_EQ(layers(*root).front(), (std::pair<std::string, Layer*>("", root.get())));
  EXPECT_EQ(layers(*root).size(), 5U);
}

TEST(Layer, ThatStandsInTwoSlotsIsVisitedOnce) {
  const auto shared = std::make_shared<Linear>(3, 3);
  Sequential root(Layers{shared, shared});
  EXPECT_THAT(parameter_names(root), testing::ElementsAre("0.weight", "0.bias"));
}

TEST(Layer, IsBuiltOnTheMetaDevice) {
  for (const NamedParameter& named : parameters(*nested())) EXPECT_TRUE(named.parameter->tensor.is_meta());
}

// libtorch's own, of few channels, writes behind its buffers.
TEST(Conv2d, AStridedPointOfFewChannelsIsWhatWideNumbersSay) {
  for (const int64_t channels : {1, 4, 8, 12}) {
    Conv2d layer({.in_channels = channels, .out_channels = 8, .stride = 2});
    materialise(layer, 3);
    const at::Tensor images = at::randn({16, channels, 32, 32}).contiguous(at::MemoryFormat::ChannelsLast);
    at::Tensor weight = parameters(layer)[0].parameter->tensor;
    const at::Tensor wide = weight.detach().to(at::kDouble).requires_grad_();
    const at::Tensor found = layer.forward(images).tensor();
    const at::Tensor wanted = at::conv2d(images.to(at::kDouble), wide, {}, 2);
    EXPECT_TRUE(at::allclose(found.to(at::kDouble), wanted, 1e-4, 1e-4));
    found.square().sum().backward();
    wanted.square().sum().backward();
    EXPECT_TRUE(at::allclose(weight.grad().to(at::kDouble), wide.grad(), 1e-3, 1e-3)) << channels;
  }
}

TEST(Materialise, GivesLeavesThatRequireGradients) {
  const auto root = nested();
  materialise(*root, 3);
  for (const NamedParameter& named : parameters(*root)) {
    EXPECT_TRUE(named.parameter->tensor.is_cpu());
    EXPECT_TRUE(named.parameter->tensor.is_leaf() && named.parameter->tensor.requires_grad());
  }
}

TEST(Materialise, ValuesDependOnSeedAndNameOnly) {
  const auto small = std::make_shared<Sequential>(Layers{std::make_shared<Linear>(3, 4)});
  const auto large = nested();
  const auto other = nested();
  materialise(*small, 3);
  materialise(*large, 3);
  materialise(*other, 4);
  const at::Tensor& weight = parameters(*large)[0].parameter->tensor;
  EXPECT_TRUE(parameters(*small)[0].parameter->tensor.equal(weight));
  EXPECT_FALSE(parameters(*other)[0].parameter->tensor.equal(weight));
}

TEST(Materialise, LayersAlikeStartWithOtherValues) {
  Sequential root(Layers{std::make_shared<Linear>(3, 3), std::make_shared<Linear>(3, 3)});
  materialise(root, 3);
  const auto all = parameters(root);
  EXPECT_FALSE(all[0].parameter->tensor.equal(all[2].parameter->tensor));
}

TEST(Materialise, KeepsWhatHasValuesAlready) {
  const auto root = nested();
  materialise(*root, 3);
  const at::Tensor before = parameters(*root)[0].parameter->tensor;
  materialise(*root, 4);
  EXPECT_TRUE(parameters(*root)[0].parameter->tensor.is_same(before));
}

TEST(Slot, CallsItsHooksAroundTheLayerInOrder) {
  const auto root = nested();
  materialise(*root, 1);
  Slot& slot = *root->slots()[1];
  std::string order;
  slot.add_before([&](const TensorTree&) { order += "a"; });
  slot.add_before([&](const TensorTree&) { order += "b"; });
  slot.add_after([&](const TensorTree&, TensorTree output) { return order += "c", output; });
  slot.add_after([&](const TensorTree&, TensorTree output) { return TensorTree(output.tensor() * 0); });
  EXPECT_EQ(root->forward(at::ones({1, 3})).tensor().abs().sum().item<float>(), 0.0F);
  EXPECT_EQ(order, "abc");
  slot.clear_hooks();
  EXPECT_NE(root->forward(at::ones({1, 3})).tensor().abs().sum().item<float>(), 0.0F);
}

TEST(Slot, RefilledCallsTheNewLayerInTheSamePass) {
  const auto root = nested();
  const ForwardContext evaluating{.training = false};
  set_context(*root, &evaluating);
  const auto old = root->slots()[1]->fill(std::make_shared<Dropout>(0.5));
  EXPECT_STREQ(old->kind(), "Sequential");
  EXPECT_FALSE(root->slots()[1]->layer().context().training);
}

TEST(ReplaceLayers, ReplacesEveryOneThatMatches) {
  const auto root = nested();
  const int replaced = replace_layers(*root, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    if (std::string(named.slot->layer().kind()) != "ReLU") return nullptr;
    return std::make_shared<Tanh>();
  });
  EXPECT_EQ(replaced, 1);
  EXPECT_STREQ(slots(*root).back().slot->layer().kind(), "Linear");
  EXPECT_STREQ(layers(*root)[3].second->kind(), "Tanh");
}

TEST(ReplaceLayers, DoesNotLookIntoWhatItPut) {
  const auto root = nested();
  const int replaced = replace_layers(*root, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    if (std::string(named.slot->layer().kind()) != "Linear") return nullptr;
    return std::make_shared<Sequential>(Layers{std::make_shared<Linear>(3, 3)});
  });
  EXPECT_EQ(replaced, 2);
}

TEST(SetContext, NullRestoresTheDefault) {
  const auto root = nested();
  {
    const ForwardContext evaluating{.training = false};
    set_context(*root, &evaluating);
    EXPECT_FALSE(root->slots()[0]->layer().context().training);
    set_context(*root, nullptr);
  }
  EXPECT_TRUE(root->slots()[0]->layer().context().training);
}

TEST(BatchNorm2d, TrainingLeavesItsStatisticsAndTouchesNoBuffer) {
  BatchNorm2d norm(3);
  materialise(norm, 1);
  std::vector<RunningStatistics> found;
  const ForwardContext context{.training = true, .statistics = &found};
  set_context(norm, &context);
  const at::Tensor x = at::randn({4, 3, 5, 5}) * 2 + 1;
  norm.forward(x);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(at::allclose(found[0].mean, x.mean({0, 2, 3}), 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(found[0].variance, x.var({0, 2, 3}, true), 1e-5, 1e-6));
  EXPECT_EQ(found[0].samples, 100);
  EXPECT_TRUE(norm.own_buffers()[0]->tensor.equal(at::zeros({3})));
  EXPECT_TRUE(norm.own_buffers()[1]->tensor.equal(at::ones({3})));
}

TEST(BatchNorm2d, OfOneValueAChannelKeepsItsBuffers) {
  BatchNorm2d norm(2);
  materialise(norm, 1);
  norm.apply_statistics({&norm, at::ones({2}), at::full({2}, NAN), 1});
  EXPECT_TRUE(norm.own_buffers()[1]->tensor.equal(at::ones({2})));
  EXPECT_EQ(norm.own_buffers()[2]->tensor.item<int64_t>(), 0);
}

TEST(Dropout, ActsInTrainingOnly) {
  Dropout dropout(0.5);
  const at::Tensor x = at::ones({1000});
  EXPECT_NEAR(dropout.forward(x).tensor().eq(0).sum().item<double>(), 500, 120);
  const ForwardContext evaluating{.training = false};
  set_context(dropout, &evaluating);
  EXPECT_TRUE(dropout.forward(x).tensor().equal(x));
}

}  // namespace
}  // namespace tutti
