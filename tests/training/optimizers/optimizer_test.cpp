#include "training/optimizers/optimizer.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tensors/memory/meter.h"
#include "tests/recipe/section.h"

namespace tutti {
namespace {

Setting sgd(double lr, double momentum, double weight_decay) {
  return section_with({{"kind", std::string("sgd")},
                       {"lr", lr},
                       {"momentum", momentum},
                       {"dampening", 0.0},
                       {"nesterov", false},
                       {"weight_decay", weight_decay},
                       {"no_decay", list_value({std::string("*.bias")})}});
}

const std::vector<const char*> kAllKinds = {
    "sgd",  "decoupled_sgdw", "adam",      "adamw", "decoupled_adamw", "nadam", "adagrad", "rmsprop",
    "lion", "lamb",           "adafactor", "muon",  "decoupled_lionw"};

struct OptimizerKeys {
  double lr, weight_decay, momentum, dampening;
  bool maximize = false;
};

// With the keys of all kinds.
Setting any_kind(const char* kind, const OptimizerKeys& keys) {
  return section_with({{"kind", std::string(kind)},
                       {"lr", keys.lr},
                       {"weight_decay", keys.weight_decay},
                       {"momentum", keys.momentum},
                       {"dampening", keys.dampening},
                       {"nesterov", false},
                       {"betas", list_value({0.9, 0.99})},
                       {"eps", 1e-8},
                       {"amsgrad", false},
                       {"maximize", keys.maximize},
                       {"adamw_match", list_value({})}});
}

std::vector<ParamView> pair_of_ones() {
  std::vector<ParamView> views{whole_view("fc.weight", at::ones({2, 2})),
                               whole_view("fc.bias", at::ones({2}))};
  for (ParamView& view : views) view.grad = at::ones_like(view.tensor);
  return views;
}

TEST(Optimizer, PatternsKeepParametersFromDecay) {
  std::vector<ParamView> views = pair_of_ones();
  make_optimizer(sgd(0.1, 0.0, 1.0), views)->step();
  EXPECT_TRUE(at::allclose(views[0].tensor, at::full({2, 2}, 0.8)));
  EXPECT_TRUE(at::allclose(views[1].tensor, at::full({2}, 0.9)));
}

// Composer divides by the first learning rate, and by nothing where that is 0.
TEST(Optimizer, DecoupledDecayIsWholeWhereTheFirstRateIsZero) {
  for (const char* kind : {"decoupled_adamw", "decoupled_sgdw", "decoupled_lionw"}) {
    std::vector<ParamView> views = pair_of_ones();
    const Setting section =
        any_kind(kind, {.lr = 0.0, .weight_decay = 0.25, .momentum = 0.0, .dampening = 0.0});
    make_optimizer(section, views)->step();
    EXPECT_TRUE(views[0].tensor.equal(at::full({2, 2}, 0.75))) << kind;
  }
}

// llm-foundry's formula, with the rates of two steps.
TEST(Optimizer, DecoupledLionShrinksByThePartOfTheFirstRate) {
  std::vector<ParamView> views = pair_of_ones();
  const auto lion = make_optimizer(any_kind("decoupled_lionw", {.lr = 0.5, .weight_decay = 0.25}), views);
  lion->step();
  lion->set_lr(0.125);
  lion->step();
  const double first = 1.0 * (1 - 0.25) - 0.5, second = first * (1 - 0.25 * 0.125 / 0.5) - 0.125;
  EXPECT_TRUE(views[0].tensor.equal(at::full({2, 2}, second)));
}

// As torch.optim: the gradient turns, weight decay does not.
TEST(Optimizer, MaximizingIsDescendingTheOppositeGradient) {
  for (const char* kind : {"sgd", "adam", "adamw", "nadam", "adagrad", "rmsprop", "adafactor"}) {
    const auto trained = [&](bool maximize) {
      std::vector<ParamView> views = pair_of_ones();
      const auto optimizer = make_optimizer(
          any_kind(
              kind,
              {.lr = 0.1, .weight_decay = 0.25, .momentum = 0.9, .dampening = 0.5, .maximize = maximize}),
          views);
      for (const double gradient : {1.0, -3.0, 0.5}) {
        for (ParamView& view : views) view.grad = at::full_like(view.tensor, maximize ? gradient : -gradient);
        optimizer->step();
      }
      return views[0].tensor;
    };
    EXPECT_TRUE(trained(true).equal(trained(false))) << kind;
    EXPECT_FALSE(trained(true).equal(at::ones({2, 2}))) << kind;
  }
}

// What a recipe's catalog refuses, torch.optim's constructors do too.
TEST(Optimizer, RefusesWhatTorchsConstructorsDo) {
  using OptimizerKeys = std::vector<std::pair<std::string, Setting::Value>>;
  const auto make_with = [](const char* kind, const std::string& key, const Setting::Value& value) {
    OptimizerKeys keys = {{"kind", std::string(kind)},
                          {"lr", 0.1},
                          {"weight_decay", 0.0},
                          {"momentum", 0.9},
                          {"dampening", 0.0},
                          {"nesterov", false},
                          {"betas", list_value({0.9, 0.99})},
                          {"eps", 1e-8},
                          {"amsgrad", false}};
    for (auto& [name, given] : keys)
      if (name == key) given = value;
    make_optimizer(section_with(keys), pair_of_ones());
  };
  for (const char* kind : kAllKinds) {
    EXPECT_NO_THROW(make_with(kind, "lr", 0.0)) << kind;
    for (const char* key : {"lr", "weight_decay"})
      EXPECT_THROW(make_with(kind, key, -0.1), UserError) << kind;
  }
  EXPECT_THROW(make_with("sgd", "momentum", -0.5), UserError);
  EXPECT_THROW(make_with("adam", "eps", -1e-8), UserError);
  EXPECT_THROW(make_with("adamw", "betas", list_value({1.0, 0.9})), UserError);
  EXPECT_THROW(make_with("adam", "betas", list_value({0.9, -0.1})), UserError);
}

TEST(Optimizer, LeavesEverythingWhereGradientsAreNotFinite) {
  std::vector<ParamView> views = pair_of_ones();
  const auto optimizer = make_optimizer(sgd(0.1, 0.9, 0.0), views);
  optimizer->step({}, at::ones({}));
  EXPECT_TRUE(views[0].tensor.equal(at::ones({2, 2})));
  EXPECT_EQ(optimizer->steps(), 0);
  for (const OptimizerState& state : optimizer->state())
    EXPECT_EQ(state.tensor.abs().sum().item<double>(), 0.0);
}

TEST(Optimizer, SkipsParametersWithoutAGradientOrWithoutRows) {
  std::vector<ParamView> views = pair_of_ones();
  views[1].grad = at::Tensor();
  views.push_back(whole_view("empty", at::empty({0, 3})));
  views[2].grad = at::empty({0, 3});
  const auto optimizer = make_optimizer(sgd(0.5, 0.9, 0.0), views);
  optimizer->step();
  EXPECT_TRUE(views[0].tensor.equal(at::full({2, 2}, 0.5)));
  EXPECT_TRUE(views[1].tensor.equal(at::ones({2})));
  EXPECT_EQ(optimizer->steps(0), 1);
  EXPECT_EQ(optimizer->steps(1), 0);
  EXPECT_EQ(optimizer->steps(2), 1) << "other ranks may have rows";
}

// A restored optimizer must continue as the one that was saved, in particular not take its first step again.
TEST(Optimizer, ResumesFromCopiedState) {
  std::vector<ParamView> views = pair_of_ones();
  const auto saved = make_optimizer(sgd(0.1, 0.9, 0.0), views);
  saved->step();
  std::vector<ParamView> copies = pair_of_ones();
  for (size_t i = 0; i < views.size(); ++i) copies[i].tensor.copy_(views[i].tensor);
  const auto restored = make_optimizer(sgd(0.1, 0.9, 0.0), copies);
  const auto from = saved->state();
  const auto to = restored->state();
  for (size_t i = 0; i < from.size(); ++i) to[i].tensor.copy_(from[i].tensor);
  saved->step();
  restored->step();
  for (size_t i = 0; i < views.size(); ++i) EXPECT_TRUE(copies[i].tensor.equal(views[i].tensor));
}

TEST(Optimizer, StateIsNamedAsInPyTorch) {
  std::vector<ParamView> views = pair_of_ones();
  const auto state = make_optimizer(sgd(0.1, 0.9, 0.0), views)->state();
  ASSERT_EQ(state.size(), 4U);
  EXPECT_EQ(state[1].name, "step");
  EXPECT_EQ(state[1].view->name, "fc.bias");
  EXPECT_EQ(state[2].name, "momentum_buffer");
  EXPECT_EQ(state[2].view->name, "fc.weight");
}

// As torch.optim: each parameter counts its own steps, and dampening spares its own first gradient.
TEST(Optimizer, AParameterWhoseGradientComesLaterIsOneThatBeginsLater) {
  for (const char* kind : kAllKinds) {
    const Setting section =
        any_kind(kind, {.lr = 0.1, .weight_decay = 0.25, .momentum = 0.9, .dampening = 0.5});
    std::vector<ParamView> late = pair_of_ones(), alone = pair_of_ones();
    const auto optimizer = make_optimizer(section, late), other = make_optimizer(section, alone);
    late[1].grad = at::Tensor();
    optimizer->step();
    for (const double gradient : {0.5, -2.0}) {
      late[1].grad = at::full({2}, gradient);
      alone[1].grad = at::full({2}, gradient);
      optimizer->step();
      other->step();
    }
    EXPECT_TRUE(late[1].tensor.equal(alone[1].tensor)) << kind;
    EXPECT_EQ(optimizer->steps(0), 3);
    EXPECT_EQ(optimizer->steps(1), 2);
  }
}

void take_step(Optimizer& optimizer, std::vector<ParamView>& views, double gradient) {
  for (ParamView& view : views) view.grad = at::full_like(view.tensor, gradient);
  optimizer.step();
}

// After surgery each parameter continues, or begins, as if it had been trained alone.
TEST(Optimizer, FollowsItsParametersIntoOtherViews) {
  for (const char* kind : kAllKinds) {
    const Setting section =
        any_kind(kind, {.lr = 0.1, .weight_decay = 0.25, .momentum = 0.9, .dampening = 0.5});
    std::vector<ParamView> views = pair_of_ones(), kept = pair_of_ones(), fresh = pair_of_ones();
    const auto optimizer = make_optimizer(section, views), of_kept = make_optimizer(section, kept),
               of_fresh = make_optimizer(section, fresh);
    for (const double gradient : {0.5, -2.0}) {
      take_step(*optimizer, views, gradient);
      take_step(*of_kept, kept, gradient);
    }
    ParamView bias = views[1];
    bias.name = "fc.inner.bias";
    views = {whole_view("fc.scale", at::ones({2, 2})), bias, whole_view("fc.other", at::ones({2}))};
    optimizer->follow({std::nullopt, 1, std::nullopt});
    for (const double gradient : {3.0, -1.0}) {
      take_step(*optimizer, views, gradient);
      take_step(*of_kept, kept, gradient);
      take_step(*of_fresh, fresh, gradient);
    }
    EXPECT_TRUE(views[0].tensor.equal(fresh[0].tensor)) << kind;
    EXPECT_TRUE(views[1].tensor.equal(kept[1].tensor)) << kind;
    EXPECT_TRUE(views[2].tensor.equal(fresh[1].tensor)) << kind;
    EXPECT_EQ(optimizer->steps(1), 4);
    EXPECT_EQ(optimizer->steps(2), 2);
  }
}

// The pattern *.bias keeps a parameter from decay whatever surgery calls it.
TEST(Optimizer, WeightDecayStaysWhenTheNameChanges) {
  std::vector<ParamView> views = pair_of_ones();
  const auto optimizer = make_optimizer(sgd(0.1, 0.0, 1.0), views);
  views[0].name = "fc.bias";
  views[1].name = "fc.shift";
  views.push_back(whole_view("new.bias", at::ones({2})));
  views.push_back(whole_view("new.weight", at::ones({2})));
  optimizer->follow({0, 1, std::nullopt, std::nullopt});
  take_step(*optimizer, views, 1.0);
  EXPECT_TRUE(at::allclose(views[0].tensor, at::full({2, 2}, 0.8)));
  EXPECT_TRUE(at::allclose(views[1].tensor, at::full({2}, 0.9)));
  EXPECT_TRUE(at::allclose(views[2].tensor, at::full({2}, 0.9)));
  EXPECT_TRUE(at::allclose(views[3].tensor, at::full({2}, 0.8)));
}

TEST(Optimizer, StateTakesTheStridesOfItsParameter) {
  std::vector<ParamView> views{whole_view("fc.bias", at::ones({2, 3}))};
  const auto optimizer = make_optimizer(sgd(0.1, 0.9, 0.0), views);
  views[0].grad = at::arange(6, at::kFloat).view({2, 3});
  optimizer->step();
  views[0].tensor.set_data(views[0].tensor.t().contiguous().t());
  optimizer->follow({0});
  const at::Tensor buffer = optimizer->state()[1].tensor;
  EXPECT_EQ(buffer.strides(), views[0].tensor.strides());
  EXPECT_TRUE(buffer.equal(at::arange(6, at::kFloat).view({2, 3})));
}

TEST(Optimizer, HasNothingForParametersThatAreNotTrained) {
  for (const char* kind : kAllKinds) {
    std::vector<ParamView> views = pair_of_ones();
    views[0].trained = false;
    const auto optimizer =
        make_optimizer(any_kind(kind, {.lr = 0.1, .weight_decay = 0.25, .momentum = 0.9}), views);
    take_step(*optimizer, views, 1.0);
    EXPECT_TRUE(views[0].tensor.equal(at::ones({2, 2})));
    EXPECT_FALSE(views[1].tensor.equal(at::ones({2})));
    for (const OptimizerState& state : optimizer->state()) EXPECT_EQ(state.view->name, "fc.bias");
  }
}

TEST(Optimizer, StridesOfSingleItemsDoNotMatter) {
  std::vector<ParamView> views{whole_view("conv.bias", at::ones({6}).as_strided({2, 3, 1, 1}, {3, 1, 3, 3}))};
  views[0].grad = at::ones({6}).as_strided({2, 3, 1, 1}, {3, 1, 1, 1});
  make_optimizer(sgd(0.5, 0.0, 0.0), views)->step();
  EXPECT_TRUE(views[0].tensor.equal(at::full({2, 3, 1, 1}, 0.5)));
}

TEST(Optimizer, APatternThatFitsNoParameterIsRefused) {
  const std::vector<ParamView> views{whole_view("fc.weight", at::ones({2, 2}))};
  EXPECT_THAT([&] { make_optimizer(sgd(0.5, 0.0, 0.1), views); },
              testing::ThrowsMessage<UserError>(testing::HasSubstr("no parameter matches *.bias")));
}

// As the weights of 32 bits, but for their rounding; 100 numbers are several vectors and a rest. Muon
// magnifies roundings of a matrix of so low a rank.
TEST(Optimizer, WeightsOf16BitsMoveAsWideOnesDo) {
  for (const char* kind : kAllKinds) {
    if (kind == std::string("muon")) continue;
    const auto trained = [&](at::ScalarType dtype) {
      const at::Tensor ramp = at::linspace(0.5, 1.0, 100).to(dtype).view({4, 25});
      std::vector<ParamView> views{whole_view("fc.weight", ramp.clone())};
      const auto optimizer = make_optimizer(
          any_kind(kind, {.lr = 0.1, .weight_decay = 0.01, .momentum = 0.9, .dampening = 0.1}), views);
      for (int step = 0; step < 3; ++step) {
        views[0].grad = ramp.clone();
        optimizer->step(at::full({}, 2.0));
      }
      return views[0].tensor.to(at::kFloat);
    };
    const at::Tensor wide = trained(at::kFloat);
    EXPECT_GT((wide - at::linspace(0.5, 1.0, 100).view({4, 25})).abs().min().item<double>(), 0.05) << kind;
    for (const auto dtype : {at::kBFloat16, at::kHalf})
      EXPECT_LT(((trained(dtype) - wide).abs() / wide.abs().clamp_min(1)).max().item<double>(), 0.01)
          << kind << " " << dtype;
  }
}

// Once an update has begun there is no way back, should there be none.
TEST(Optimizer, AnUpdateTakesNoMemoryButForScalars) {
  Meter::install();
  for (const char* kind : kAllKinds) {
    for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
      std::vector<ParamView> views{whole_view("a", at::ones({40, 30}, dtype)),
                                   whole_view("b", at::ones({1000}, dtype))};
      const auto optimizer =
          make_optimizer(any_kind(kind, {.lr = 0.1, .weight_decay = 0.01, .momentum = 0.9}), views);
      const at::Tensor scale = at::full({}, 2.0);
      for (ParamView& view : views) view.grad = at::ones_like(view.tensor);
      Meter::reset_peak(0);
      const int64_t before = Meter::used_bytes(0);
      for (int step = 0; step < 2; ++step) optimizer->step(scale);
      EXPECT_LT(Meter::peak_bytes(0) - before, 1000) << kind << " " << dtype;
    }
  }
}

TEST(OptimizerDeathTest, GradientLaidOutOtherwiseIsRefused) {
  std::vector<ParamView> views{whole_view("conv.bias", at::ones({2, 3}).t())};
  views[0].grad = at::ones({3, 2});
  const auto optimizer = make_optimizer(sgd(0.1, 0.0, 0.0), views);
  EXPECT_DEATH(optimizer->step(), "conv.bias: gradient and parameter have different strides");
}

TEST(Pattern, StarStandsForAnyRun) {
  EXPECT_TRUE(matches_pattern("*.bias", "layer1.0.bias"));
  EXPECT_TRUE(matches_pattern("*bn*", "layer1.0.bn1.weight"));
  EXPECT_TRUE(matches_pattern("fc.weight", "fc.weight"));
  EXPECT_TRUE(matches_pattern("*", "anything"));
  EXPECT_FALSE(matches_pattern("*.bias", "bias"));
  EXPECT_FALSE(matches_pattern("bn*", "layer1.bn1"));
  EXPECT_FALSE(matches_pattern("fc.weight", "fc.weights"));
}

}  // namespace
}  // namespace tutti
