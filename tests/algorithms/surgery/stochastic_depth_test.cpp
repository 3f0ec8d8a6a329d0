#include "algorithms/surgery/stochastic_depth.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/zoo/resnet.h"
#include "runtime/error.h"
#include "tests/algorithms/batch_algorithms.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using enum Event;

// A custom block: the main branch is 1 for any input.
class OwnBlock final : public ResidualBlock {
 public:
  const char* kind() const override { return "OwnBlock"; }

 protected:
  at::Tensor main(const at::Tensor& x) override { return at::ones_like(x); }
};

// A user's own model of three such blocks.
class NetOfSlots final : public Model {
 public:
  NetOfSlots() {
    for (const char* name : {"a", "b", "c"}) add_slot(name, std::make_shared<OwnBlock>());
  }
  TensorTree forward(const Batch& batch) override {
    at::Tensor x = batch["input"];
    for (const auto& slot : slots()) x = (*slot)(x);
    return x;
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  const char* kind() const override { return "NetOfSlots"; }
};

StochasticDepthOptions own(StochasticMethod method, double drop_rate = 0.5) {
  return {.target_layer_name = "OwnBlock",
          .stochastic_method = method,
          .drop_rate = drop_rate,
          .drop_distribution = DropDistribution::kUniform};
}

// The sum that NetOfSlots adds to zeros [samples, 2] whose first sample has this place, on a step.
at::Tensor added(StochasticMethod method, int64_t step, int64_t first_sample, int64_t samples) {
  NetOfSlots model;
  apply_stochastic_depth(model, own(method));
  ForwardContext context{.training = true, .first_sample = first_sample};
  context.source = [&](std::string_view name, int64_t place) { return make_draws(5, {name, step, place}); };
  set_context(model, &context);
  const Batch batch = TensorTree::Children{{"input", at::zeros({samples, 2})}};
  return model.forward(batch).tensor();
}

TEST(StochasticDepthTest, ActsAtInitAndWhereItWarmsUpAtEachBatch) {
  EXPECT_EQ(events_of(StochasticDepth({})), std::set{kInit});
  EXPECT_EQ(events_of(StochasticDepth({}, Time(0.1, TimeUnit::kDuration))), (std::set{kInit, kBatchStart}));
}

TEST(StochasticDepthTest, ABlockIsLeftOutOnAllRanksAlike) {
  std::set<double> kept;
  for (int64_t step = 0; step < 20; ++step) {
    const at::Tensor one = added(StochasticMethod::kBlock, step, 0, 4);
    EXPECT_TRUE(one.eq(one[0][0]).all().item<bool>()) << "the whole batch";
    EXPECT_TRUE(at::equal(one, added(StochasticMethod::kBlock, step, 4, 4))) << "another rank";
    kept.insert(one[0][0].item<double>());
  }
  EXPECT_GE(kept.size(), 3U) << "other blocks in other steps";
}

TEST(StochasticDepthTest, SamplesAreLeftOutByTheirPlaceInTheGlobalBatch) {
  const at::Tensor whole = added(StochasticMethod::kSample, 3, 0, 32);
  for (const int64_t first : {0, 16})
    EXPECT_TRUE(at::equal(added(StochasticMethod::kSample, 3, first, 16), whole.narrow(0, first, 16)));
  EXPECT_FALSE(at::equal(whole.narrow(0, 0, 16), whole.narrow(0, 16, 16))) << "ranks differ";
  EXPECT_FALSE(at::equal(added(StochasticMethod::kSample, 4, 0, 32), whole)) << "steps differ";
  EXPECT_NEAR(whole.mean().item<double>(), 1.5, 0.45) << "half of three blocks";
}

TEST(StochasticDepthTest, ABranchInEvaluationIsWeightedByItsProbability) {
  NetOfSlots model;
  auto options = own(StochasticMethod::kBlock, 0.6);
  options.drop_distribution = DropDistribution::kLinear;
  EXPECT_EQ(apply_stochastic_depth(model, options).size(), 3U);
  const ForwardContext evaluating{.training = false};
  set_context(model, &evaluating);
  const Batch batch = TensorTree::Children{{"input", at::zeros({2, 2})}};
  const at::Tensor want = at::full({2, 2}, 0.8 + 0.6 + 0.4);
  EXPECT_TRUE(at::allclose(model.forward(batch).tensor(), want));
  set_context(model, nullptr);
}

// The skipped block of a ResNet: its input, or relu(downsample(input)); no gradient for the branch.
TEST(StochasticDepthTest, BlocksOfAResNetAreSkippedAndHaveNoGradients) {
  ResNet model({.depth = 50, .width = 4, .num_classes = 5});
  StochasticDepthOptions all_dropped{.drop_rate = 1.0, .drop_distribution = DropDistribution::kUniform};
  EXPECT_EQ(apply_stochastic_depth(model, all_dropped).size(), 16U);
  materialise(model, 1);
  const Batch batch = TensorTree::Children{{"input", at::randn({2, 3, 32, 32})}};
  model.forward(batch).tensor().sum().backward();
  for (const auto& [name, parameter] : parameters(model)) {
    const bool of_block = name.starts_with("layer") && name.find("downsample") == std::string::npos;
    EXPECT_EQ(parameter->tensor.grad().defined(), !of_block) << name;
  }
}

TEST(StochasticDepthTest, ASkippedBottleneckIsItsShortcutAndReluWhereThatIsNotItsInput) {
  const at::Tensor x = at::randn({2, 8, 4, 4});
  Bottleneck same(8, 2, 1), narrow(8, 4, 2);
  for (Bottleneck* block : {&same, &narrow}) {
    materialise(*block, 1);
    block->set_drop({.rate = 1.0, .name = "block"});
  }
  EXPECT_TRUE(at::equal(same.forward(x).tensor(), x));
  const at::Tensor shortcut = (*narrow.slots().back())(x);
  EXPECT_LT(shortcut.min().item<double>(), 0);
  EXPECT_TRUE(at::equal(narrow.forward(x).tensor(), shortcut.relu()));
}

State state_of_own_model(bool composer) {
  State state = image_state();
  state.model = std::make_shared<NetOfSlots>();
  state.composer = composer;
  return state;
}

std::vector<double> rates_of(const State& state) {
  std::vector<double> rates;
  for (const auto& slot : state.model->slots())
    rates.push_back(dynamic_cast<const ResidualBlock&>(slot->layer()).drop()->rate);
  return rates;
}

void start_batch(StochasticDepth& algorithm, State& state, int64_t step) {
  state.timestamp.batch = step;
  Logger logger;
  algorithm.apply(kBatchStart, state, logger);
}

TEST(StochasticDepthTest, AWarmUpEndsAtTheFullRates) {
  const std::vector<double> none = {0, 0, 0}, half = {0.25, 0.25, 0.25}, full = {0.5, 0.5, 0.5};
  for (const bool composer : {false, true}) {
    for (const Time& warmup : {Time(0.1, TimeUnit::kDuration), Time(10, TimeUnit::kBatch)}) {
      State state = state_of_own_model(composer);  // 100 batches
      StochasticDepth algorithm(own(StochasticMethod::kBlock), warmup);
      Logger logger;
      algorithm.apply(kInit, state, logger);
      EXPECT_EQ(rates_of(state), full);
      start_batch(algorithm, state, 0);
      EXPECT_EQ(rates_of(state), none);
      start_batch(algorithm, state, 5);
      EXPECT_EQ(rates_of(state), half);
      start_batch(algorithm, state, 10);
      EXPECT_EQ(rates_of(state), composer ? half : full) << "Composer's rates stay";
    }
  }
}

TEST(StochasticDepthTest, AResumedRunHasTheRatesOfTheLastBatch) {
  const Time warmup(0.1, TimeUnit::kDuration);
  State state = state_of_own_model(true), resumed = state_of_own_model(true);
  StochasticDepth algorithm(own(StochasticMethod::kBlock), warmup);
  StochasticDepth another(own(StochasticMethod::kBlock), warmup);
  Logger logger;
  algorithm.apply(kInit, state, logger);
  another.apply(kInit, resumed, logger);
  start_batch(algorithm, state, 7);
  another.restore(algorithm.state());
  EXPECT_EQ(rates_of(resumed), rates_of(state));
  EXPECT_EQ(StochasticDepth({}).state(), "") << "rates that do not change";
}

TEST(StochasticDepthTest, RatesOutOfRangeAndWarmUpsOfSamplesAreErrors) {
  EXPECT_THROW(StochasticDepth({.drop_rate = 1.5}), UserError);
  EXPECT_THROW(StochasticDepth({.drop_rate = -0.5}), UserError);
  EXPECT_THROW(StochasticDepth(own(StochasticMethod::kSample), Time(0.1, TimeUnit::kDuration)), UserError);
}

TEST(StochasticDepthTest, AnErrorForOtherBlocksListsThoseOfTheModel) {
  State state = state_of_own_model(false);
  std::string warned;
  state.services->on_warning = [&](const std::string& what) { warned = what; };
  Logger logger;
  StochasticDepth of_resnets({}), misspelt({.target_layer_name = "OwnBlok"});
  of_resnets.apply(kInit, state, logger);
  EXPECT_THAT(warned, AllOf(HasSubstr("no effect: NetOfSlots"), HasSubstr("ResNetBottleneck")));
  EXPECT_NO_THROW(of_resnets.require(state)) << "as in Composer";
  misspelt.apply(kInit, state, logger);
  EXPECT_THAT(message_of<UserError>([&] { misspelt.require(state); }),
              AllOf(HasSubstr("'OwnBlok'"), HasSubstr(": OwnBlock")));
}

}  // namespace
}  // namespace tutti
