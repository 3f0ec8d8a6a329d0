#include "training/optimizer.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/golden/golden_file.h"

namespace tutti {
namespace {

const std::map<std::string, std::string> kKinds = {{"torch.optim.SGD", "sgd"},
                                                   {"torch.optim.Adam", "adam"},
                                                   {"torch.optim.AdamW", "adamw"},
                                                   {"composer.optim.DecoupledSGDW", "decoupled_sgdw"},
                                                   {"composer.optim.DecoupledAdamW", "decoupled_adamw"}};

const std::map<std::string, double> kDecay = {{"adamw", 0.01}, {"decoupled_adamw", 1e-5}};

std::vector<double> betas_of(const GoldenCase& c, const std::string& kind) {
  if (c.has("betas")) return c.numbers("betas");
  return {0.9, kind == "decoupled_adamw" ? 0.95 : 0.999};
}

Setting section_of(const GoldenCase& c) {
  const std::string kind = kKinds.at(c.text("composer_api"));
  const std::vector<double> betas = betas_of(c, kind);
  const auto number = [&](const char* key, double fallback) { return c.has(key) ? c.number(key) : fallback; };
  return golden_section(
      {{"kind", kind},
       {"lr", c.number("lr")},
       {"momentum", number("momentum", 0.0)},
       {"dampening", number("dampening", 0.0)},
       {"nesterov", number("nesterov", 0.0) != 0.0},
       {"weight_decay", number("weight_decay", kDecay.contains(kind) ? kDecay.at(kind) : 0.0)},
       {"betas", golden_list({betas[0], betas[1]})},
       {"eps", number("eps", 1e-8)},
       {"amsgrad", number("amsgrad", 0.0) != 0.0}});
}

std::vector<ParamView> views_of(const GoldenCase& c) {
  return {whole_view("p0", c.tensor("in/p0").clone()), whole_view("p1", c.tensor("in/p1").clone())};
}

class GoldenOptimizer : public testing::TestWithParam<std::string> {};

// Gradients come as sums over `scale` samples, as they do in training.
TEST_P(GoldenOptimizer, MovesParametersAsPyTorchDoes) {
  const GoldenCase c("optimizers.h5", GetParam());
  constexpr float kScale = 8.0F;
  std::vector<ParamView> views = views_of(c);
  const auto optimizer = make_optimizer(section_of(c), views);
  std::vector<at::Tensor> walks[2];
  for (int64_t step = 0; step < c.tensor("in/lr").size(0); ++step) {
    for (size_t i = 0; i < 2; ++i) views[i].grad = c.tensor("in/g" + std::to_string(i))[step] * kScale;
    optimizer->set_lr(c.tensor("in/lr")[step].item<double>());
    optimizer->step(at::scalar_tensor(kScale));
    for (size_t i = 0; i < 2; ++i) walks[i].push_back(views[i].tensor.clone());
  }
  c.expect_close(at::stack(walks[0]), "out/p0");
  c.expect_close(at::stack(walks[1]), "out/p1");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenOptimizer, testing::ValuesIn(golden_cases("optimizers.h5")),
                         [](const auto& info) { return info.param; });

Setting sgd(double lr, double momentum, double weight_decay) {
  return golden_section({{"kind", std::string("sgd")},
                         {"lr", lr},
                         {"momentum", momentum},
                         {"dampening", 0.0},
                         {"nesterov", false},
                         {"weight_decay", weight_decay},
                         {"no_decay", golden_list({std::string("*.bias")})}});
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
  make_optimizer(sgd(0.5, 0.9, 0.0), views)->step();
  EXPECT_TRUE(views[0].tensor.equal(at::full({2, 2}, 0.5)));
  EXPECT_TRUE(views[1].tensor.equal(at::ones({2})));
}

// A restored optimizer must go on as the one that was saved, in particular not take its first step again.
TEST(Optimizer, GoesOnFromCopiedState) {
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
  ASSERT_EQ(state.size(), 3U);
  EXPECT_EQ(state[0].name, "step");
  EXPECT_EQ(state[0].view, nullptr);
  EXPECT_EQ(state[1].name, "momentum_buffer");
  EXPECT_EQ(state[1].view->name, "fc.weight");
}

TEST(Optimizer, StridesOfSingleItemsDoNotMatter) {
  std::vector<ParamView> views{whole_view("conv", at::ones({6}).as_strided({2, 3, 1, 1}, {3, 1, 3, 3}))};
  views[0].grad = at::ones({6}).as_strided({2, 3, 1, 1}, {3, 1, 1, 1});
  make_optimizer(sgd(0.5, 0.0, 0.0), views)->step();
  EXPECT_TRUE(views[0].tensor.equal(at::full({2, 3, 1, 1}, 0.5)));
}

TEST(OptimizerDeathTest, GradientLaidOutOtherwiseIsRefused) {
  std::vector<ParamView> views{whole_view("conv", at::ones({2, 3}).t())};
  views[0].grad = at::ones({3, 2});
  const auto optimizer = make_optimizer(sgd(0.1, 0.0, 0.0), views);
  EXPECT_DEATH(optimizer->step(), "conv: the gradient is not laid out as the parameter");
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
