#include "training/optimizers/parameter_groups.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"

namespace tutti {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pointwise;
using testing::ThrowsMessage;

Setting optimizer(const std::string& toml) {
  const Catalog catalog = optimizer_catalog();
  return resolve(parse_recipe("[optimizer]\n" + toml, "test.toml"), std::span(&catalog, 1)).at("optimizer");
}

std::vector<ParamView> views_of(const std::vector<const char*>& names) {
  std::vector<ParamView> views;
  for (const char* name : names) {
    views.push_back(whole_view(name, at::ones({2, 2})));
    views.back().grad = at::ones({2, 2});
  }
  return views;
}

std::vector<double> moved(const std::vector<ParamView>& views) {
  std::vector<double> by;
  for (const ParamView& view : views) by.push_back(1.0 - view.tensor[0][0].item<double>());
  return by;
}

constexpr const char* kSgd = "kind = 'sgd'\nlr = 0.1\n";
constexpr const char* kTwoGroups =
    "[[optimizer.groups]]\nmatch = ['*.bias', 'x.*']\nlr = 0.02\n"
    "[[optimizer.groups]]\nmatch = ['x.*', 'y.*']\nlr = 0.4\nweight_decay = 0.5\n";

// As torch's param_groups: lr of the group, and what it lacks from the optimizer; all follow the schedule.
TEST(ParameterGroups, TheFirstThatMatchesCounts) {
  std::vector<ParamView> views = views_of({"x.weight", "y.weight", "y.bias", "z"});
  const auto sgd = make_optimizer(optimizer(std::string(kSgd) + "weight_decay = 1.0\n" + kTwoGroups), views);
  EXPECT_THAT(sgd->group_lrs(), Pointwise(DoubleEq(), {0.1, 0.02, 0.4}));
  sgd->step();
  EXPECT_THAT(moved(views), Pointwise(testing::FloatNear(1e-6F), {0.04, 0.6, 0.04, 0.2}));
  sgd->set_lr(0.05);
  EXPECT_THAT(sgd->group_lrs(), Pointwise(DoubleEq(), {0.05, 0.01, 0.2}));
}

TEST(ParameterGroups, ShareTheNamesWithoutWeightDecay) {
  std::vector<ParamView> views = views_of({"x.weight", "y.weight", "y.bias", "z"});
  const auto sgd = make_optimizer(
      optimizer(std::string(kSgd) + "weight_decay = 1.0\nno_decay = ['y.*']\n" + kTwoGroups), views);
  sgd->step();
  EXPECT_THAT(moved(views), Pointwise(testing::FloatNear(1e-6F), {0.04, 0.4, 0.02, 0.2}));
}

TEST(ParameterGroups, StayWithTheirParameterThroughSurgery) {
  std::vector<ParamView> views = views_of({"x.weight", "z"});
  const auto sgd = make_optimizer(
      optimizer(std::string(kSgd) + "[[optimizer.groups]]\nmatch = ['x.*']\nlr = 0.02\n"), views);
  views = views_of({"z", "y.weight", "x.new"});
  sgd->follow({1, 0, std::nullopt});
  sgd->step();
  EXPECT_THAT(moved(views), Pointwise(testing::FloatNear(1e-6F), {0.1, 0.02, 0.02}));
}

TEST(ParameterGroups, EveryKindHasThem) {
  for (const char* kind : {"sgd", "decoupled_sgdw", "adam", "adamw", "decoupled_adamw", "nadam", "adagrad",
                           "rmsprop", "adafactor", "lion", "decoupled_lionw", "lamb", "muon"}) {
    const std::string keys = std::string("kind = '") + kind + "'\nlr = 0.1\nweight_decay = 0.2\n";
    const std::string group = "[[optimizer.groups]]\nmatch = ['x']\nlr = 0.03\nweight_decay = 0.4\n";
    std::vector<ParamView> views = views_of({"x", "y"}), alone = views_of({"x"}), other = views_of({"y"});
    const auto both = make_optimizer(optimizer(keys + group), views);
    const auto with = make_optimizer(
        optimizer(std::string("kind = '") + kind + "'\nlr = 0.03\nweight_decay = 0.4\n"), alone);
    const auto without = make_optimizer(optimizer(keys), other);
    for (const double part : {1.0, 0.5}) {
      both->set_lr(0.1 * part);
      with->set_lr(0.03 * part);
      without->set_lr(0.1 * part);
      for (const auto* one : {&both, &with, &without}) (*one)->step();
    }
    EXPECT_TRUE(at::allclose(views[0].tensor, alone[0].tensor, 1e-6, 0)) << kind;
    EXPECT_TRUE(views[1].tensor.equal(other[0].tensor)) << kind;
  }
}

TEST(ParameterGroups, OfFrozenParametersAloneAreRefused) {
  std::vector<ParamView> views = views_of({"x.weight", "z"});
  views[1].trained = false;
  EXPECT_THAT(
      [&] {
        make_optimizer(optimizer(std::string(kSgd) + "[[optimizer.groups]]\nmatch = ['z']\nlr = 0.1\n"),
                       views);
      },
      ThrowsMessage<UserError>(HasSubstr("no trained parameter matches z")));
}

TEST(ParameterGroups, AreRefusedWhereNoParameterFits) {
  const std::vector<ParamView> views = views_of({"x.weight", "z"});
  const auto make = [&](const std::string& keys) { make_optimizer(optimizer(kSgd + keys), views); };
  EXPECT_THAT([&] { make("[[optimizer.groups]]\nmatch = ['x.*', 'w.*']\n"); },
              ThrowsMessage<UserError>(HasSubstr("no trained parameter matches w.*")));
  EXPECT_THAT([&] { make("layer_decay = 0.5\n"); }, ThrowsMessage<UserError>(HasSubstr("layer_decay")));
  EXPECT_THAT(
      [&] {
        make_optimizer(optimizer("kind = 'sgd'\nlr = 0.0\n[[optimizer.groups]]\nmatch = ['z']\nlr = 0.1\n"),
                       views);
      },
      ThrowsMessage<UserError>(HasSubstr("groups.0.lr")));
}

TEST(ParameterGroups, AreRefusedForAPluginsOptimizer) {
  const std::vector<ParamView> views = views_of({"h.0.weight", "h.1.weight"});
  const std::string plugin = "kind = 'plugin'\nname = 'a'\n";
  for (const char* keys : {"layer_decay = 0.5\n", "[[optimizer.groups]]\nmatch = ['h.0.*']\n"})
    EXPECT_THAT([&] { make_optimizer(optimizer(plugin + keys), views); },
                ThrowsMessage<UserError>(HasSubstr("the optimizer of a plugin has no groups")));
}

TEST(LayersOf, AreTheBlocksThatRepeatByNumber) {
  const auto layers = [](const std::vector<const char*>& names) { return layers_of(views_of(names)); };
  EXPECT_THAT(layers({"wte.weight", "h.0.ln_1.weight", "h.0.ln_2.weight", "h.1.ln_1.weight",
                      "h.1.mlp.0.weight", "ln_f.weight", "head.weight"}),
              ElementsAre(0, 1, 1, 2, 2, 3, 3));
  EXPECT_THAT(layers({"conv1.weight", "layer1.0.conv.weight", "layer1.1.conv.weight", "layer2.0.conv.weight",
                      "layer2.1.conv.weight", "fc.weight"}),
              ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(layers({"class_token", "encoder.encoder_layer_0.ln_1.weight",
                      "encoder.encoder_layer_1.ln_1.weight", "heads.head.weight"}),
              ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(layers({"0.weight", "2.weight", "4.weight"}), ElementsAre(1, 2, 3));
  EXPECT_THAT(layers({"a.weight", "b.0.weight"}), ElementsAre());
}

// timm's scales: layer_decay ** (layers behind it), 1 at the head.
TEST(LayerDecay, FallsFromTheHeadToTheEmbeddings) {
  std::vector<ParamView> views = views_of({"wte.weight", "h.0.weight", "h.1.weight", "head.weight"});
  const auto sgd = make_optimizer(optimizer(std::string(kSgd) + "layer_decay = 0.5\n"), views);
  sgd->step();
  EXPECT_THAT(moved(views), Pointwise(testing::FloatNear(1e-6F), {0.0125, 0.025, 0.05, 0.1}));
  EXPECT_THAT(sgd->group_lrs(), Pointwise(DoubleEq(), {0.1, 0.05, 0.025, 0.0125}));
}

TEST(LayerDecay, ScalesTheRatesOfGroups) {
  std::vector<ParamView> views = views_of({"wte.weight", "h.0.weight", "h.1.weight", "head.weight"});
  const std::string group = "[[optimizer.groups]]\nmatch = ['h.*', 'head.*']\nlr = 0.4\n";
  make_optimizer(optimizer(kSgd + ("layer_decay = 0.5\n" + group)), views)->step();
  EXPECT_THAT(moved(views), Pointwise(testing::FloatNear(1e-6F), {0.0125, 0.1, 0.2, 0.4}));
}

}  // namespace
}  // namespace tutti
