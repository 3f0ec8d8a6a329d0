#include "job/plugin_library.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/readers/recipe_transforms.h"
#include "models/loss.h"
#include "tests/actors/sleeping_world.h"
#include "training/metrics/factory.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Each of what a plugin can bring here is its component of this name.
std::string recipe_text(const std::string& name, const std::string& options = "") {
  const std::string more = options.empty() ? "" : "options = " + options;
  const std::string table = "kind = 'plugin'\nname = '" + name + "'\n" + (more.empty() ? "" : more + "\n");
  const std::string loss =
      "loss = {kind = 'plugin', name = '" + name + "'" + (more.empty() ? "" : ", " + more) + "}\n";
  return "seed = 1\n[plugins]\nlibrary = 'a.so'\n[model]\nkind = 'mlp'\n" + loss +
         "[data.train]\nkind = 'synthetic'\nbatch_size = 2\n[[data.train.transforms]]\n" + table +
         "[data.eval]\nkind = 'synthetic'\n[[data.eval.metrics]]\n" + table +
         "measured_name = 'other'\n[[data.eval.metrics]]\nkind = 'LossMetric'\n" + loss + "[optimizer]\n" +
         table + "[scheduler]\n" + table + "[train]\nmax_duration = '1ba'\n";
}

struct ZeroLoss final : Loss {
  LossTargets targets() const override { return LossTargets::kClasses; }
  at::Tensor mean(const at::Tensor& outputs, const at::Tensor&) const override { return outputs.sum() * 0; }
  at::Tensor of_samples(const at::Tensor& outputs, const at::Tensor&) const override {
    return outputs.sum(1) * 0;
  }
};

struct Count final : Metric {
  std::string name() const override { return "Count"; }
  void update(const at::Tensor&, const at::Tensor&) override { ++sums_[0]; }
};

struct Same final : Transform {
  explicit Same(double width) : width(width) {}
  SampleSpec spec(const SampleSpec& before) const override {
    if (width > 1) throw TransformError("width", "expected at most 1");
    return before;
  }
  void apply(Batch&, const RowDraws&) const override {}
  double width;
};

struct Still final : Optimizer {
  Still(const std::vector<ParamView>& views, Common common) : Optimizer(views, std::move(common)) {}
  const char* name() const override { return "Still"; }
  void update(Call, const at::Tensor&) override {}
};

// Whatever `make` makes.
template <class Make>
void bring(Plugin& plugin, const std::string& name, const Make& make) {
  plugin.losses[name] = [=](const Setting& options) { return make(LossPtr(), options); };
  plugin.metrics[name] = [=](const Setting& options) { return make(MetricPtr(), options); };
  plugin.transforms[name] = [=](const Setting& options, const SampleSpec&) {
    return make(TransformPtr(), options);
  };
  plugin.optimizers[name] = [=](const Setting& options, const std::vector<ParamView>&,
                                const std::vector<std::string>&) { return make(OptimizerPtr(), options); };
  plugin.schedules[name] = [=](const Setting& options, const Horizon&) { return make(Schedule(), options); };
}

Setting loaded(Plugin plugin, const std::string& name, const std::string& options = "") {
  Setting recipe = recipe_of(recipe_text(name, options));
  PluginLibrary(std::move(plugin), "/recipes").resolve_options(recipe);
  return recipe;
}

struct Kind {
  const char* place;  // of `name`
  std::function<void(const Setting& recipe)> make;
};

const SampleSpec kSamples{.shapes = {{"input", {4}}, {"target", {}}}};

std::vector<Kind> kinds() {
  return {{"test.toml:6: model.loss.name", [](auto& recipe) { make_loss(recipe.at("model").at("loss")); }},
          {"test.toml:12: data.train.transforms.0.name",
           [](auto& recipe) { make_transforms(recipe.at("data").at("train").at("transforms"), kSamples); }},
          {"test.toml:17: data.eval.metrics.0.name",
           [](auto& recipe) { make_metric(recipe.at("data").at("eval").at("metrics").array()[0]); }},
          {"test.toml:21: data.eval.metrics.1.loss.name",
           [](auto& recipe) { make_metric(recipe.at("data").at("eval").at("metrics").array()[1]); }},
          {"test.toml:24: optimizer.name", [](auto& recipe) { make_optimizer(recipe.at("optimizer"), {}); }},
          {"test.toml:27: scheduler.name", [](auto& recipe) { make_schedule(recipe.at("scheduler"), {}); }}};
}

TEST(PluginLibrary, ErrorsOfItsFunctionsNameTheComponent) {
  Plugin plugin;
  bring(plugin, "broken",
        [](auto made, const Setting&) -> decltype(made) { throw std::runtime_error("no luck"); });
  const Setting recipe = loaded(plugin, "broken");
  for (const Kind& one : kinds())
    EXPECT_THAT(message_of<UserError>([&] { one.make(recipe); }),
                StartsWith(std::string(one.place) + " = \"broken\": it cannot be made: no luck\n"));
}

TEST(PluginLibrary, MayThrowWhatIsNoException) {
  Plugin plugin;
  bring(plugin, "odd", [](auto made, const Setting&) -> decltype(made) { throw 7; });
  const Setting recipe = loaded(plugin, "odd");
  for (const Kind& one : kinds())
    EXPECT_THAT(message_of<UserError>([&] { one.make(recipe); }),
                StartsWith(std::string(one.place) + " = \"odd\": it cannot be made: the library throws"));
}

TEST(PluginLibrary, UserErrorsOfItsFunctionsStayAsTheyAre) {
  Plugin plugin;
  bring(plugin, "picky", [](auto made, const Setting&) -> decltype(made) { throw UserError("not today"); });
  const Setting recipe = loaded(plugin, "picky");
  for (const Kind& one : kinds()) EXPECT_EQ(message_of<UserError>([&] { one.make(recipe); }), "not today");
}

TEST(PluginLibrary, NullIsNoComponent) {
  Plugin plugin;
  bring(plugin, "empty", [](auto made, const Setting&) { return made; });
  const Setting recipe = loaded(plugin, "empty");
  for (const Kind& one : kinds())
    EXPECT_THAT(message_of<UserError>([&] { one.make(recipe); }),
                StartsWith(std::string(one.place) +
                           " = \"empty\": it cannot be made: the library's function returns null\n"));
}

Plugin whole() {
  Plugin plugin;
  plugin.losses["a"] = [](const Setting&) { return std::make_shared<ZeroLoss>(); };
  plugin.metrics["a"] = [](const Setting&) { return std::make_unique<Count>(); };
  plugin.transforms["a"] = [](const Setting& options, const SampleSpec&) {
    return std::make_shared<Same>(options.is_table() ? options.at("width").number() : 0);
  };
  plugin.optimizers["a"] = [](const Setting&, const std::vector<ParamView>& views,
                              const std::vector<std::string>& no_decay) {
    return std::make_unique<Still>(views, Optimizer::Common{0.5, 0.25, no_decay});
  };
  plugin.schedules["a"] = [](const Setting&, const Horizon& horizon) {
    return [base = horizon.base_lr](const Timestamp&) { return base; };
  };
  return plugin;
}

TEST(PluginLibrary, ItsLossesMayBeOfOneOutputOfSeveral) {
  Setting recipe = recipe_of(
      "seed = 1\n[plugins]\nlibrary = 'a.so'\n[model]\nkind = 'exported'\npath = 'm.pt2'\n[[model.losses]]\n"
      "loss = {kind = 'plugin', name = 'a'}\n[data.train]\nkind = 'synthetic'\nbatch_size = 2\n[optimizer]\n"
      "kind = 'sgd'\nlr = 1\n[train]\nmax_duration = '1ba'\n");
  PluginLibrary(whole(), "/recipes").resolve_options(recipe);
  const Setting& loss = recipe.at("model").at("losses").array()[0].at("loss");
  EXPECT_EQ(make_loss(loss)->targets(), LossTargets::kClasses);
}

TEST(PluginLibrary, ItsComponentsAreMadeAsThoseOfTheCatalogs) {
  const Setting recipe = loaded(whole(), "a");
  EXPECT_EQ(make_loss(recipe.at("model").at("loss"))->targets(), LossTargets::kClasses);
  const auto& metrics = recipe.at("data").at("eval").at("metrics").array();
  EXPECT_EQ(make_metric(metrics[0])->measured_name(), "other");
  EXPECT_EQ(make_metric(metrics[1])->measured_name(), "LossMetric");
  const Transforms made = make_transforms(recipe.at("data").at("train").at("transforms"), kSamples);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0].name, "a") << "its random numbers are its own";
  EXPECT_EQ(make_schedule(recipe.at("scheduler"), {.base_lr = 3})({}), 3);
  EXPECT_EQ(make_optimizer(recipe.at("optimizer"), {})->base_lr(), 0.5);
}

TEST(PluginLibrary, OptionsOfAllKindsAreResolved) {
  Plugin plugin = whole();
  const Key width = Key{"width", KeyType::kNumber, "0.5", "how wide"}.at_least(0);
  for (Plugin::Keys* keys : {&plugin.keys.losses, &plugin.keys.metrics, &plugin.keys.transforms,
                             &plugin.keys.optimizers, &plugin.keys.schedules})
    (*keys)["a"] = {width};
  const Setting recipe = loaded(plugin, "a");
  const Setting& data = recipe.at("data");
  for (const Setting* one :
       {&recipe.at("model").at("loss"), &data.at("train").at("transforms").array()[0],
        &data.at("eval").at("metrics").array()[0], &data.at("eval").at("metrics").array()[1].at("loss"),
        &recipe.at("optimizer"), &recipe.at("scheduler")})
    EXPECT_EQ(one->at("options").at("width").number(), 0.5) << one->path;

  const std::string all = message_of<UserError>([&] { loaded(plugin, "a", "{width = -1}"); });
  for (const char* place : {"model.loss.options.width", "data.train.transforms.0.options.width",
                            "data.eval.metrics.0.options.width", "data.eval.metrics.1.loss.options.width",
                            "optimizer.options.width", "scheduler.options.width"})
    EXPECT_THAT(all, HasSubstr(std::string(place) + " = -1: expected a number >= 0"));
}

TEST(PluginLibrary, UnknownNamesAreRefusedWithTheNearest) {
  Plugin plugin = whole();
  plugin.losses["margin"] = plugin.losses["a"];
  const std::string all = message_of<UserError>([&] { loaded(plugin, "margim"); });
  EXPECT_THAT(all,
              HasSubstr("test.toml:6: model.loss.name = \"margim\": the library of [plugins] has no such "
                        "loss; did you mean margin?"));
  for (const char* what : {"transform", "metric", "optimizer", "schedule"})
    EXPECT_THAT(all, HasSubstr(std::string("has no such ") + what + "; there are a"));
}

TEST(PluginLibrary, ATransformBlamesItsOption) {
  const Setting recipe = loaded(whole(), "a", "{width = 2.0}");
  const Setting& tables = recipe.at("data").at("train").at("transforms");
  EXPECT_THAT(message_of<UserError>([&] { make_transforms(tables, kSamples); }),
              StartsWith("test.toml:13: data.train.transforms.0.options.width = 2.0: expected at most 1"));
}

TEST(PluginLibrary, WithoutOneNothingIsMade) {
  const Setting recipe = recipe_of(recipe_text("a"));
  EXPECT_THAT(message_of<UserError>([&] { make_loss(recipe.at("model").at("loss")); }),
              AllOf(StartsWith("test.toml:6: model.loss.kind = \"plugin\""),
                    HasSubstr("no library of [plugins] is loaded")));
}

}  // namespace
}  // namespace tutti
