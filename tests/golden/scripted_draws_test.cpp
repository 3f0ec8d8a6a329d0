#include "tests/golden/scripted_draws.h"

#include <ATen/ATen.h>
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace tutti {
namespace {

const std::vector<double> kHalves = {0.5, 0.5};

TEST(ScriptedDraws, GiveEachKindInItsOwnOrder) {
  ScriptedDraws draws({.uniform = {0.25, 3.5}, .integer = {2, 0}, .bernoulli = {true}, .beta = {0.75}});
  EXPECT_EQ(draws.integer(0, 3), 2);
  EXPECT_EQ(draws.uniform(0, 1), 0.25);
  EXPECT_TRUE(draws.bernoulli(0.1));
  EXPECT_EQ(draws.integer(0, 1), 0);
  EXPECT_EQ(draws.uniform(4, 3), 3.5);
  EXPECT_EQ(draws.beta(1, 1), 0.75);
  draws.expect_all_used();
}

TEST(ScriptedDraws, GiveTensorsAndLists) {
  const at::Tensor order = at::tensor({2, 0, 1}, at::kLong);
  const at::Tensor noise = at::tensor({0.0F, 0.5F}).view({1, 2});
  ScriptedDraws draws(
      {.dirichlet = {{0.25, 0.75}}, .permutation = {order}, .uniforms = {noise}, .choose = {{1}}});
  EXPECT_EQ(draws.dirichlet(kHalves), (std::vector<double>{0.25, 0.75}));
  EXPECT_TRUE(at::equal(draws.permutation(3), order));
  EXPECT_TRUE(at::equal(draws.uniforms({1, 2}), noise));
  EXPECT_EQ(draws.choose(1, kHalves), std::vector<int64_t>{1});
  draws.expect_all_used();
}

TEST(ScriptedDraws, ThrowWhereNothingIsLeft) {
  ScriptedDraws draws({});
  EXPECT_THROW(draws.uniform(0, 1), std::logic_error);
  EXPECT_THROW(draws.integer(0, 1), std::logic_error);
  EXPECT_THROW(draws.bernoulli(0.5), std::logic_error);
  EXPECT_THROW(draws.beta(1, 1), std::logic_error);
  EXPECT_THROW(draws.dirichlet(kHalves), std::logic_error);
  EXPECT_THROW(draws.permutation(1), std::logic_error);
  EXPECT_THROW(draws.uniforms({1}), std::logic_error);
  EXPECT_THROW(draws.choose(1, kHalves), std::logic_error);
}

TEST(ScriptedDraws, ThrowWhatTheCallCouldNotHaveDrawn) {
  ScriptedDraws draws({.uniform = {1.5},
                       .integer = {3},
                       .bernoulli = {true, false},
                       .beta = {-0.5},
                       .dirichlet = {{1.0}, {0.5, 0.6}},
                       .permutation = {at::tensor({0, 0}, at::kLong), at::arange(3)},
                       .uniforms = {at::zeros({2}), at::ones({1})},
                       .choose = {{0, 0}, {2}, {1}}});
  EXPECT_THROW(draws.uniform(0, 1), std::logic_error);
  EXPECT_THROW(draws.integer(0, 3), std::logic_error);
  EXPECT_THROW(draws.bernoulli(0), std::logic_error);
  EXPECT_THROW(draws.bernoulli(1), std::logic_error);
  EXPECT_THROW(draws.beta(1, 1), std::logic_error);
  EXPECT_THROW(draws.dirichlet(kHalves), std::logic_error);
  EXPECT_THROW(draws.dirichlet(kHalves), std::logic_error);
  EXPECT_THROW(draws.permutation(2), std::logic_error);
  EXPECT_THROW(draws.permutation(2), std::logic_error);
  EXPECT_THROW(draws.uniforms({1}), std::logic_error);
  EXPECT_THROW(draws.uniforms({1}), std::logic_error);
  EXPECT_THROW(draws.choose(2, kHalves), std::logic_error);
  EXPECT_THROW(draws.choose(1, kHalves), std::logic_error);
  EXPECT_THROW(draws.choose(1, std::vector<double>{1.0, 0.0}), std::logic_error);
  draws.expect_all_used();
}

void expect_no_uniform_left() { ScriptedDraws({.uniform = {0.5}}).expect_all_used(); }

TEST(ScriptedDraws, SayWhatIsLeft) {
  EXPECT_NONFATAL_FAILURE(expect_no_uniform_left(), "1 draws not asked for: uniform");
}

TEST(ScriptedDraws, SourceGivesTheRestToEveryKey) {
  ScriptedDraws draws({.uniform = {0.125, 0.25}});
  const DrawSource source = draws.source();
  EXPECT_EQ(source({.name = "MixUp"})->uniform(0, 1), 0.125);
  EXPECT_EQ(source({.name = "CutMix", .step = 1})->uniform(0, 1), 0.25);
  draws.expect_all_used();
}

}  // namespace
}  // namespace tutti
