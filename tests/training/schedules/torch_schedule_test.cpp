#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/golden/golden_file.h"
#include "training/schedules/learning_rate.h"
#include "training/schedules/schedule.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

const std::string kFile = own_path("torch_schedulers.h5");

const std::map<std::string, std::string> kKinds = {
    {"StepLR", "step_lr"},
    {"MultiStepLR", "multistep_lr"},
    {"ConstantLR", "constant_lr"},
    {"LinearLR", "linear_lr"},
    {"ExponentialLR", "exponential_lr"},
    {"CosineAnnealingLR", "cosine_annealing_lr"},
    {"CosineAnnealingWarmRestarts", "cosine_annealing_warm_restarts_lr"},
    {"PolynomialLR", "polynomial_lr"},
    {"OneCycleLR", "one_cycle_lr"},
    {"ReduceLROnPlateau", "reduce_lr_on_plateau"},
    {"SequentialLR", "sequential_lr"},
};

Setting written(Setting::Value value) { return {std::move(value), "scheduler", {"recipe.toml", 3}}; }

Setting::Value value_of(const GoldenCase& c, const std::string& attribute, KeyType type) {
  switch (type) {
    case KeyType::kBoolean:
      return c.number(attribute) != 0.0;
    case KeyType::kInteger:
      return static_cast<int64_t>(c.number(attribute));
    case KeyType::kIntegers: {
      Setting::Array items;
      for (const double item : c.numbers(attribute)) items.push_back(written(static_cast<int64_t>(item)));
      return items;
    }
    case KeyType::kNumber:
      return c.number(attribute);
    default:
      return c.text(attribute);
  }
}

// The table that a recipe would have: what the case leaves out is left to the catalog's defaults.
Setting table_of(const GoldenCase& c, const std::string& prefix) {
  const Catalog catalog = scheduler_catalog();
  const std::string kind = kKinds.at(c.text(prefix + "scheduler"));
  Setting::Table table{{"kind", written(kind)}};
  for (const Key& key : catalog.find_entry(kind)->keys) {
    if (key.type == KeyType::kTables) {
      Setting::Array tables;
      for (int i = 0;; ++i) {
        const std::string inner = key.name + '.' + std::to_string(i) + '.';
        if (!c.has(inner + "scheduler")) break;
        tables.push_back(table_of(c, inner));
      }
      table.emplace_back(key.name, written(std::move(tables)));
    } else if (c.has(prefix + key.name)) {
      table.emplace_back(key.name, written(value_of(c, prefix + key.name, key.type)));
    }
  }
  return written(std::move(table));
}

Setting resolved(Setting table) {
  const Catalog catalog = scheduler_catalog();
  Setting::Table recipe{{"scheduler", std::move(table)}};
  return resolve(written(std::move(recipe)), std::span(&catalog, 1)).at("scheduler");
}

Horizon horizon_of(double epochs, double lr) {
  return {.max_duration = Time(epochs, TimeUnit::kEpoch), .batches_per_epoch = 10, .base_lr = lr};
}

at::Tensor rates(const GoldenCase& c, const Setting& section) {
  const at::Tensor steps = c.tensor("in/steps");
  const double lr = c.number("lr");
  const Schedule schedule = make_schedule(section, horizon_of(static_cast<double>(steps.numel()), lr));
  at::Tensor all = at::empty(steps.sizes(), at::kDouble);
  for (int64_t i = 0; i < steps.numel(); ++i)
    all[i] = lr * schedule({.epoch = steps[i].item<int64_t>(), .batch = 10 * steps[i].item<int64_t>()});
  return all;
}

at::Tensor rates_on_metrics(const GoldenCase& c, const Setting& section) {
  const at::Tensor metrics = c.tensor("in/metrics");
  const double lr = c.number("lr");
  Plateau plateau(section, lr);
  at::Tensor all = at::empty(metrics.sizes(), at::kDouble);
  for (int64_t i = 0; i < metrics.numel(); ++i) {
    const double before = plateau.multiplier();
    const bool fell = plateau.observe(metrics[i].item<double>());
    EXPECT_EQ(fell, plateau.multiplier() < before);
    all[i] = lr * plateau.multiplier();
    Plateau restored(section, lr);
    restored.restore(plateau.state());
    std::swap(plateau, restored);
  }
  return all;
}

class GoldenTorchSchedule : public testing::TestWithParam<std::string> {};

TEST_P(GoldenTorchSchedule, GivesTorchsLearningRates) {
  const GoldenCase c(kFile, GetParam());
  if (c.has("error")) {
    EXPECT_THROW(make_schedule(resolved(table_of(c, "")), horizon_of(5, 0.1)), UserError) << c.text("title");
    return;
  }
  const Setting section = resolved(table_of(c, ""));
  const bool watches = c.text("scheduler") == "ReduceLROnPlateau";
  c.expect_close(watches ? rates_on_metrics(c, section) : rates(c, section), "out/lr");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenTorchSchedule, testing::ValuesIn(golden_cases(kFile)),
                         [](const auto& info) { return info.param; });

Setting scheduler_section(const std::string& keys) {
  const Catalog catalog = scheduler_catalog();
  const Setting recipe = parse_recipe("[scheduler]\n" + keys, "recipe.toml");
  return resolve(recipe, std::span(&catalog, 1)).at("scheduler");
}

Schedule made(const std::string& keys, const Horizon& horizon) {
  return make_schedule(scheduler_section(keys), horizon);
}

TEST(TorchSchedule, IsSteppedEveryEpochUnlessTheRecipeSaysEveryBatch) {
  const Horizon horizon = horizon_of(5, 0.1);
  const Timestamp now{.epoch = 2, .batch = 23};
  EXPECT_DOUBLE_EQ(made("kind = 'exponential_lr'\ngamma = 0.5", horizon)(now), 0.25);
  const Schedule every_batch = made("kind = 'exponential_lr'\ngamma = 0.9\nstep = 'batch'", horizon);
  EXPECT_DOUBLE_EQ(every_batch(now), std::pow(0.9, 23));
}

TEST(TorchSchedule, AScheduleRatioScalesWhatComposerScales) {
  Horizon horizon = horizon_of(5, 0.1);
  horizon.scale_schedule_ratio = 0.5;
  const auto at = [&](const std::string& keys, int64_t epoch) {
    return made(keys, horizon)({.epoch = epoch});
  };
  EXPECT_DOUBLE_EQ(at("kind = 'step_lr'\nstep_size = 5", 2), 0.1);  // 2.5, truncated
  EXPECT_DOUBLE_EQ(at("kind = 'multistep_lr'\nmilestones = [3, 9]", 1), 0.1);
  EXPECT_DOUBLE_EQ(at("kind = 'cosine_annealing_lr'\nT_max = 8", 2), 0.5);
  EXPECT_DOUBLE_EQ(at("kind = 'cosine_annealing_warm_restarts_lr'\nT_0 = 8", 4), 1.0);
  EXPECT_DOUBLE_EQ(at("kind = 'exponential_lr'\ngamma = 0.9", 3), std::pow(0.9, 6));
  EXPECT_THAT([&] { made("kind = 'linear_lr'", horizon); },
              ThrowsMessage<UserError>(HasSubstr("recipe.toml:2: scheduler.kind")));
  EXPECT_THAT([&] { made("kind = 'step_lr'\nstep_size = 1", horizon); },
              ThrowsMessage<UserError>(HasSubstr("recipe.toml:3: scheduler.step_size = 1")));
}

TEST(TorchSchedule, ACycleKeepsItsLastRateBeyondItsEnd) {
  Horizon horizon = horizon_of(1, 0.1);
  horizon.max_duration = Time::parse("1000sp");
  const Schedule schedule = made("kind = 'one_cycle_lr'\nmax_lr = 0.5\ntotal_steps = 10", horizon);
  EXPECT_NEAR(0.1 * schedule({.epoch = 9}), 0.5 / 25 / 1e4, 1e-15);
  EXPECT_EQ(schedule({.epoch = 10}), schedule({.epoch = 9}));
  EXPECT_EQ(schedule({.epoch = 99}), schedule({.epoch = 9}));
}

TEST(TorchSchedule, ACycleThatEndsBeforeTheTrainingIsRefused) {
  const auto make = [](const char* step, const char* max_duration) {
    Horizon horizon = horizon_of(1, 0.1);
    horizon.max_duration = Time::parse(max_duration);
    made("kind = 'one_cycle_lr'\nmax_lr = 0.5\ntotal_steps = 40\nstep = '" + std::string(step) + "'",
         horizon);
  };
  const auto refused = ThrowsMessage<UserError>(HasSubstr("recipe.toml:4: scheduler.total_steps = 40"));
  EXPECT_NO_THROW(make("batch", "4ep"));
  EXPECT_THAT([&] { make("batch", "5ep"); }, refused);
  EXPECT_NO_THROW(make("epoch", "40ep"));
  EXPECT_THAT([&] { make("epoch", "41ep"); }, refused);
  EXPECT_NO_THROW(make("epoch", "400ba"));
  EXPECT_THAT([&] { make("epoch", "401ba"); }, refused);
  EXPECT_THAT([&] { make("batch", "41ba"); }, refused);
}

struct Bad {
  const char* name;
  const char* keys;
  const char* message;
};

class BadTorchSchedule : public testing::TestWithParam<Bad> {};

TEST_P(BadTorchSchedule, IsAUserErrorThatNamesLineAndKey) {
  EXPECT_THAT([] { made(GetParam().keys, horizon_of(5, 0.1)); },
              ThrowsMessage<UserError>(HasSubstr(GetParam().message)));
}

const Bad kBad[] = {
    {"NoLength", "kind = 'cosine_annealing_lr'\nT_max = 0",
     "recipe.toml:3: scheduler.T_max = 0: expected an integer in [1, 1e+15]"},
    {"FallingMilestones", "kind = 'multistep_lr'\nmilestones = [\n  4,\n  3,\n]",
     "recipe.toml:5: scheduler.milestones.1 = 3: milestones must ascend; expected at least 4"},
    {"CycleWithoutLength", "kind = 'one_cycle_lr'\nmax_lr = 1.0",
     "recipe.toml:1: [scheduler]: total_steps is missing, or epochs and steps_per_epoch in its place"},
    {"CycleWithTwoLengths", "kind = 'one_cycle_lr'\nmax_lr = 1.0\nepochs = 9\ntotal_steps = 9",
     "recipe.toml:5: scheduler.total_steps = 9: excludes epochs and steps_per_epoch"},
    {"CycleOfMomentum", "kind = 'one_cycle_lr'\nmax_lr = 1.0\ntotal_steps = 9\ncycle_momentum = true",
     "recipe.toml:5: scheduler.cycle_momentum = true: momentum cannot be cycled"},
    {"RiseOfNoLength", "kind = 'one_cycle_lr'\nmax_lr = 1.0\ntotal_steps = 8\npct_start = 0.125",
     "recipe.toml:5: scheduler.pct_start = 0.125"},
    {"RepeatedMilestones",
     "kind = 'sequential_lr'\nmilestones = [4, 4]\nschedulers = [{kind = 'constant_lr'}, {kind = "
     "'constant_lr'}, {kind = 'constant_lr'}]",
     "recipe.toml:3: scheduler.milestones.1 = 4: milestones must ascend; expected at least 5"},
    {"TooFewMilestones",
     "kind = 'sequential_lr'\nmilestones = []\n[[scheduler.schedulers]]\nkind = 'constant_lr'\n"
     "[[scheduler.schedulers]]\nkind = 'linear_lr'",
     "recipe.toml:3: scheduler.milestones = []: expected one fewer than schedulers, of which there are 2"},
    {"NoSchedulers", "kind = 'sequential_lr'\nmilestones = []",
     "recipe.toml:1: [scheduler]: schedulers is missing"},
    {"BadValueWithin",
     "kind = 'sequential_lr'\nmilestones = []\n[[scheduler.schedulers]]\nkind = 'linear_lr'\n"
     "total_iters = 0",
     "recipe.toml:6: scheduler.schedulers.0.total_iters = 0: expected an integer in [1, 1e+15]"},
    {"UnknownKeyWithin",
     "kind = 'sequential_lr'\nmilestones = []\n[[scheduler.schedulers]]\nkind = 'linear_lr'\n"
     "total_iter = 3",
     "recipe.toml:6: scheduler.schedulers.0.total_iter = 3: unknown key of scheduler linear_lr; did you mean "
     "total_iters?"},
    {"PlateauWithin",
     "kind = 'sequential_lr'\nmilestones = []\n[[scheduler.schedulers]]\nkind = 'reduce_lr_on_plateau'",
     "recipe.toml:5: scheduler.schedulers.0.kind = \"reduce_lr_on_plateau\": unknown scheduler"},
};

INSTANTIATE_TEST_SUITE_P(All, BadTorchSchedule, testing::ValuesIn(kBad),
                         [](const auto& info) { return info.param.name; });

TEST(TorchSchedule, ARateOfItsOwnNeedsAnOptimizersRateToMultiply) {
  const auto make = [](const std::string& eta_min) {
    made("kind = 'cosine_annealing_lr'\nT_max = 5\neta_min = " + eta_min, horizon_of(5, 0.0));
  };
  EXPECT_NO_THROW(make("0"));
  EXPECT_THAT([&] { make("0.1"); }, ThrowsMessage<UserError>(HasSubstr("recipe.toml:4: scheduler.eta_min")));
}

}  // namespace
}  // namespace tutti
