#include "algorithms/loop/layer_freezing.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "models/layers/linear.h"
#include "models/zoo/mlp.h"
#include "runtime/error.h"
#include "training/state.h"

namespace tutti {
namespace {

// Four layers with parameters: 0, 2, 3 and 5.
std::shared_ptr<Model> freezable_net() {
  auto net = std::make_shared<SequentialNet>(std::vector<std::string>{
      "Linear(4, 6)", "ReLU()", "Linear(6, 6)", "BatchNorm1d(6)", "ReLU()", "Linear(6, 3)"});
  materialise(*net, 1);
  return net;
}

std::vector<std::string> trained_names(Layer& model) {
  std::vector<std::string> names;
  for (const auto& one : parameters(model))
    if (one.parameter->tensor.requires_grad()) names.push_back(one.name);
  return names;
}

at::Tensor outputs_of(Model& model) {
  return model.forward(TensorTree::Children{{"input", at::randn({5, 4})}}).tensor();
}

TEST(LayerFreezingTest, BackwardEndsBehindFrozenLayers) {
  const auto owned = freezable_net();
  Model& net = *owned;
  outputs_of(net).sum().backward();
  EXPECT_TRUE(parameters(net)[0].parameter->tensor.grad().defined());
  EXPECT_EQ(freeze_layers(net, 0.75, 0.0).depth, 2);
  bool differentiated = true;
  Slot::Hook hook;
  for (const auto& one : slots(net))
    if (one.name == "3")
      hook =
          one.slot->before([&](const TensorTree& input) { differentiated = input.tensor().requires_grad(); });
  outputs_of(net).sum().backward();
  EXPECT_FALSE(differentiated);
  for (const auto& one : parameters(net)) {
    const bool frozen = one.name.starts_with("0.") || one.name.starts_with("2.");
    EXPECT_NE(one.parameter->tensor.grad().defined(), frozen) << one.name;
  }
}

TEST(LayerFreezingTest, TheLastLayerIsNeverFrozen) {
  const auto owned = freezable_net();
  Model& net = *owned;
  freeze_layers(net, 1.0, 0.0, 1.0);
  EXPECT_EQ(trained_names(net), (std::vector<std::string>{"5.weight", "5.bias"}));
  Linear alone(3, 2);
  materialise(alone, 1);
  EXPECT_EQ(freeze_layers(alone, 1.0, 0.0).depth, 0);
  EXPECT_EQ(trained_names(alone).size(), 2U);
}

struct Freezing {
  double start = 0.5, level = 1.0;
  Time max_duration = {};
  bool warns = false;
};

// Of 3 layers; epochs have 4 batches. Freezing at the end of the training has no effect.
TEST(LayerFreezingTest, AScheduleThatFreezesNoLayerIsAWarning) {
  const auto epochs = [](int64_t count) { return Time(count, TimeUnit::kEpoch); };
  const auto batches = [](int64_t count) { return Time(count, TimeUnit::kBatch); };
  for (const auto& [start, level, whole, warns] :
       std::vector<Freezing>{{0.5, 1.0, epochs(1), true},
                             {0.0, 1.0, epochs(1), true},
                             {0.0, 1.0, epochs(2), false},
                             {0.0, 0.5, epochs(2), true},
                             {0.5, 1.0, epochs(6), false},
                             {0.5, 1.0, epochs(2), true},
                             {0.0, 0.0, epochs(9), true},
                             {1.0, 1.0, epochs(9), true},
                             {0.0, 1.0, batches(4), true},
                             {0.0, 1.0, batches(5), false},
                             {0.0, 1.0, batches(3), true},
                             {0.0, 0.4, batches(5), true},
                             {0.5, 1.0, Time(9, TimeUnit::kToken), false},
                             {1.0, 1.0, Time(9, TimeUnit::kToken), true}}) {
    std::vector<std::string> warned;
    State state;
    state.model = freezable_net();
    state.dataloader_len = 4;
    state.max_duration = whole;
    state.services->on_warning = [&](const std::string& what) { warned.push_back(what); };
    LayerFreezing freezing(start, level);
    freezing.require(state);
    EXPECT_EQ(warned.size(), warns ? 1U : 0U) << start << " " << level << " " << whole.text();
    for (const auto& what : warned)
      EXPECT_TRUE(what.starts_with("LayerFreezing has no effect: a training of " + whole.text() +
                                   " freezes none of 3 layers before its end"))
          << what;
    freezing.restore("1");
    freezing.require(state);
    EXPECT_EQ(warned.size(), warns ? 1U : 0U) << "what is frozen stays so";
  }
}

// Layers frozen at an epoch's end are frozen again when a run resumes, at FIT_START.
TEST(LayerFreezingTest, ARestoredAlgorithmFreezesTheSameLayers) {
  State state;
  state.max_duration = Time(4, TimeUnit::kEpoch);
  Logger logger;
  LayerFreezing first(0.0), second(0.0);
  EXPECT_FALSE(first.match(Event::kFitStart, state)) << "nothing is frozen yet";
  EXPECT_EQ(first.state(), "");
  state.model = freezable_net();
  for (int epoch = 0; epoch < 3; ++epoch) state.timestamp.to_next_epoch();
  ASSERT_TRUE(first.match(Event::kEpochEnd, state));
  first.apply(Event::kEpochEnd, state, logger);
  const auto left = trained_names(*state.model);
  EXPECT_EQ(left.front(), "3.weight");
  second.restore(first.state());
  ASSERT_TRUE(second.match(Event::kFitStart, state));
  state.model = freezable_net();
  second.apply(Event::kFitStart, state, logger);
  EXPECT_EQ(trained_names(*state.model), left);
  EXPECT_THROW(second.restore("many"), UserError);
}

}  // namespace
}  // namespace tutti
