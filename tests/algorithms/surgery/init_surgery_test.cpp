// Tests of all surgery on convolutions.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <algorithm>

#include "algorithms/surgery/blurpool.h"
#include "algorithms/surgery/channels_last.h"
#include "algorithms/surgery/no_op_model.h"
#include "algorithms/surgery/squeeze_excite.h"
#include "algorithms/surgery/weight_standardization.h"
#include "models/exported/exported_model.h"
#include "models/layers/activation.h"
#include "models/layers/blocks.h"
#include "models/zoo/mlp.h"
#include "tests/recipe/section.h"
#include "training/engine/engine.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// A function for a loop of one's own, the names of a strided convolution's weights afterwards, and its class.
struct Surgery {
  std::string name;
  std::function<int(Layer& model)> operate;
  std::string weight, bias;
  std::shared_ptr<Algorithm> algorithm;
};

void PrintTo(const Surgery& surgery, std::ostream* out) { *out << surgery.name; }

const std::vector<Surgery> kSurgery = {
    {"BlurPool", [](Layer& model) { return apply_blurpool(model); }, "conv.weight", "conv.bias",
     std::make_shared<BlurPool>()},
    {"BlurPoolLast", [](Layer& model) { return apply_blurpool(model, {.blur_first = false}); }, "conv.weight",
     "conv.bias", std::make_shared<BlurPool>(BlurPoolOptions{.blur_first = false})},
    {"ChannelsLast", [](Layer& model) { return apply_channels_last(model); }, "weight", "bias",
     std::make_shared<ChannelsLast>()},
    {"SqueezeExcite", [](Layer& model) { return apply_squeeze_excite(model, 0.25, 16); }, "conv.weight",
     "conv.bias", std::make_shared<SqueezeExcite>(0.25, 16)},
    {"WeightStandardization", [](Layer& model) { return apply_weight_standardization(model); },
     "parametrizations.weight.original", "bias", std::make_shared<WeightStandardization>()}};

std::shared_ptr<Conv2d> strided() {
  return std::make_shared<Conv2d>(Conv2dOptions{.in_channels = 16,
                                                .out_channels = 16,
                                                .kernel_size = 3,
                                                .stride = 2,
                                                .padding = 1,
                                                .groups = 4,
                                                .bias = true});
}

// A user's own layer with a convolution that is called twice, in two slots.
class Twice final : public Layer {
 public:
  Twice() : once_(add_slot("once", strided())), again_(add_slot("again", once_.share())) {}
  TensorTree forward(const TensorTree& input) override { return again_(once_(input)); }
  const char* kind() const override { return "Twice"; }

 private:
  Slot& once_;
  Slot& again_;
};

class OwnModel final : public Model {
 public:
  OwnModel()
      : narrow_(add_slot("narrow", std::make_shared<Conv2d>(
                                       Conv2dOptions{.in_channels = 4, .out_channels = 16, .stride = 1}))),
        twice_(add_slot("twice", std::make_shared<Twice>())) {}
  TensorTree forward(const Batch& batch) override { return twice_(narrow_(batch["input"])); }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().square().mean(); }
  const char* kind() const override { return "OwnModel"; }

 private:
  Slot& narrow_;
  Slot& twice_;
};

std::map<std::string, std::shared_ptr<Parameter>> named_parameters(Layer& model) {
  std::map<std::string, std::shared_ptr<Parameter>> named;
  for (const auto& one : parameters(model)) named[one.name] = one.parameter;
  return named;
}

class InitSurgery : public testing::TestWithParam<Surgery> {
 protected:
  const Surgery& surgery_ = GetParam();
};

TEST_P(InitSurgery, ActsAtInitAlone) {
  for (std::size_t e = 0; e < kEvents; ++e) {
    const auto event = static_cast<Event>(e);
    EXPECT_EQ(surgery_.algorithm->match(event, State()), event == Event::kInit) << name(event);
  }
}

TEST_P(InitSurgery, ChangesAModelOfAUsersOwnOnce) {
  OwnModel model;
  note_names(model);
  const auto before = named_parameters(model);
  EXPECT_GT(surgery_.operate(model), 0);
  EXPECT_EQ(surgery_.operate(model), 0) << "there is nothing left to do";
  materialise(model, 3);
  const auto after = named_parameters(model);
  EXPECT_EQ(after.at("twice.once." + surgery_.weight), before.at("twice.once.weight"));
  EXPECT_EQ(after.at("twice.once." + surgery_.bias), before.at("twice.once.bias"));
  const auto twice = model.slots()[1]->share();
  EXPECT_EQ(twice->slots()[0]->share(), twice->slots()[1]->share()) << "one layer in two slots stays one";
  const Batch batch = TensorTree::Children{{"input", at::randn({2, 4, 9, 9})}};
  EXPECT_EQ(model.forward(batch).tensor().sizes(), at::IntArrayRef({2, 16, 3, 3}));
}

TEST_P(InitSurgery, LeavesAllInitialValuesAsTheyWere) {
  OwnModel plain, changed;
  note_names(changed);
  surgery_.operate(changed);
  materialise(plain, 3);
  materialise(changed, 3);
  std::map<std::string, at::Tensor> by_origin;
  for (const auto& one : parameters(changed)) by_origin[one.parameter->origin] = one.parameter->tensor;
  for (const auto& one : parameters(plain))
    EXPECT_TRUE(by_origin.at(one.name).equal(one.parameter->tensor)) << one.name;
}

Setting recipe_of_sgd() {
  return section_with(
      {{"model", section_with({{"kind", std::string("own")}}).value}, {"optimizer", momentum_sgd().value}});
}

void take_step(Trainee& trainee) {
  const Batch batch = TensorTree::Children{{"input", at::ones({2, 4, 9, 9})}};
  for (auto& view : trainee.views) view.tensor.mutable_grad() = at::Tensor();
  trainee.loss_of(trainee.forward(batch), batch).backward();
  for (auto& view : trainee.views) view.grad = view.tensor.grad();
  trainee.optimizer->step();
}

TEST_P(InitSurgery, AnOptimizerFollowsInALoopOfOnesOwn) {
  Trainee trainee;
  build(trainee, recipe_of_sgd(), {}, 3,
        [](const Setting&, const SampleSpec&) { return std::make_shared<OwnModel>(); });
  take_step(trainee);
  const auto momentum = [&](const std::string& name) {
    for (const auto& one : trainee.optimizer->state())
      if (one.view->name == name && one.name == "momentum_buffer") return one.tensor.clone();
    return at::Tensor();
  };
  const at::Tensor before = momentum("twice.once.weight");
  surgery_.operate(*trainee.model);
  follow_surgery(trainee, 3);
  const at::Tensor kept = momentum("twice.once." + surgery_.weight);
  EXPECT_TRUE(kept.defined() && kept.equal(before));
  const auto weights = [&] {
    std::vector<at::Tensor> copies;
    for (const auto& view : trainee.views) copies.push_back(view.tensor.detach().clone());
    return copies;
  };
  const auto earlier = weights();
  take_step(trainee);
  const auto later = weights();
  for (std::size_t i = 0; i < later.size(); ++i)
    EXPECT_FALSE(earlier[i].equal(later[i])) << trainee.views[i].name;
}

TEST_P(InitSurgery, AModelWithNothingToChangeIsAWarningOfOneRank) {
  State state;
  std::vector<std::string> warned;
  state.services->on_warning = [&](const std::string& what) { warned.push_back(what); };
  state.model = std::make_shared<Mlp>(MlpOptions{.in_features = 8, .hidden = {4}, .num_classes = 10});
  Logger logger;
  for (state.topology.rank = 0; state.topology.rank < 2; ++state.topology.rank)
    surgery_.algorithm->apply(Event::kInit, state, logger);
  EXPECT_THAT(warned, ElementsAre(HasSubstr(surgery_.algorithm->name() + " has no effect: Mlp has no ")));
}

INSTANTIATE_TEST_SUITE_P(All, InitSurgery, testing::ValuesIn(kSurgery),
                         [](const auto& info) { return info.param.name; });

// The names of the algorithms in the order in which they act at INIT.
std::vector<std::string> order_of(Algorithms algorithms) {
  State state;
  state.model = std::make_shared<OwnModel>();
  Logger logger;
  std::vector<std::string> names(algorithms.size());
  for (const Trace& trace :
       Engine(state, logger, {.algorithms = std::move(algorithms)}).run_event(Event::kInit))
    names.at(static_cast<std::size_t>(trace.order)) = trace.algorithm;
  return names;
}

// Brings new convolutions; only its name counts here.
class StubOfFactorize final : public Algorithm {
 public:
  std::string name() const override { return "Factorize"; }
  bool match(Event event, const State&) const override { return event == Event::kInit; }
  void apply(Event, State&, Logger&) override {}
};

TEST(OrderOfSurgery, ConvolutionsAreFactorizedBeforeTheyAreStandardized) {
  EXPECT_THAT(order_of({std::make_shared<WeightStandardization>(), std::make_shared<StubOfFactorize>()}),
              ElementsAre("Factorize", "WeightStandardization"));
}

TEST(OrderOfSurgery, IsThatOfTheRecipeUnlessItMatters) {
  const auto blur = std::make_shared<BlurPool>();
  const auto excite = std::make_shared<SqueezeExcite>();
  EXPECT_THAT(order_of({blur, excite}), ElementsAre("BlurPool", "SqueezeExcite"));
  EXPECT_THAT(order_of({excite, blur}), ElementsAre("SqueezeExcite", "BlurPool"));
  EXPECT_THAT(order_of({std::make_shared<ChannelsLast>(), excite, std::make_shared<NoOpModel>(), blur}),
              ElementsAre("NoOpModel", "SqueezeExcite", "BlurPool", "ChannelsLast"));
}

TEST(OrderOfSurgery, AllSurgeryTogetherTrainsInAnyOrder) {
  const Batch batch = TensorTree::Children{{"input", at::randn({2, 4, 9, 9})}};
  std::vector<std::size_t> order = {0, 2, 3, 4};
  do {
    OwnModel model;
    for (const std::size_t i : order) EXPECT_GT(kSurgery[i].operate(model), 0);
    materialise(model, 3);
    model.loss(model.forward(batch), batch).backward();
    EXPECT_EQ(parameters(model).size(), 5U);
    for (const auto& one : parameters(model)) {
      EXPECT_TRUE(one.parameter->tensor.grad().defined()) << one.name;
      const bool is_kernel = one.parameter->tensor.dim() == 4;
      EXPECT_EQ(is_kernel, one.name.ends_with("parametrizations.weight.original")) << one.name;
    }
  } while (std::ranges::next_permutation(order).found);
}

// Its convolutions are tutti's own layers.
TEST(Surgery, ReachesExportedModels) {
  ExportedModel model({.path = TUTTI_SOURCE_DIR "/tests/golden/exported/convnet.pt2"});
  EXPECT_EQ(apply_weight_standardization(model), 2);
  materialise(model, 1);
  const Batch batch(TensorTree::Children{{"input", at::randn({2, 3, 6, 6})}});
  EXPECT_EQ(model.forward(batch).tensor().size(1), 5);
}

}  // namespace
}  // namespace tutti
