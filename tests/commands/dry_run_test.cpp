#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/check.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/disk.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Trains for long, starts from a checkpoint that need not fit, and writes into the folder. A schedule and a
// stopper need the whole duration and an evaluation.
Setting long_recipe(const std::string& folder, const std::string& more = "") {
  const std::string text = R"(
seed = 1
[model]
kind = "mlp"
hidden = [8]
[data.train]
kind = "synthetic"
samples = 96
batch_size = 12
shape = [6]
[data.eval]
kind = "synthetic"
samples = 1000000
shape = [6]
[optimizer]
kind = "adamw"
lr = 0.01
[scheduler]
kind = "cosine_annealing_with_warmup"
t_warmup = "5ep"
[train]
max_duration = "10ep"
[[callbacks]]
kind = "early_stopper"
monitor = "MulticlassAccuracy"
dataloader_label = "eval"
[checkpoint]
best = { metric = "MulticlassAccuracy" }
)";
  return resolve_recipe(parse_recipe(text + "save_folder = '" + folder +
                                         "/saved'\n[[loggers]]\nkind = 'csv'\n" + "filename = '" + folder +
                                         "/log.csv'\n" + more,
                                     folder + "/recipe.toml"));
}

TEST(DryRunTest, StepsAreTriedAndNothingIsLeft) {
  const Scratch scratch;
  const TriedStep step = try_steps(long_recipe(scratch.path()), {.ranks = 2, .steps = 3});
  EXPECT_EQ(step.steps, 3);
  EXPECT_GT(step.ms, 0);
  EXPECT_GT(step.memory_mb, 0);
  EXPECT_EQ(step.grad_accum, 1);
  EXPECT_THAT(PosixDisk().list(scratch.path()), ElementsAre());
}

TEST(DryRunTest, CheckSaysWhatAStepAndTheRunTake) {
  const Scratch scratch;
  const std::string text = check_text(long_recipe(scratch.path()), {.steps = 1});
  EXPECT_THAT(text, HasSubstr("ok: "));
  EXPECT_THAT(text, HasSubstr("\n  run      10ep, 80 steps\n"));
  EXPECT_THAT(text, ContainsRegex("\n  step     [0-9.e-]+ ms, [0-9.e-]+ MB at its peak, of the one rank"));
  EXPECT_THAT(text, ContainsRegex("\n  all      about [0-9]+\\.[0-9] s, without"));
  EXPECT_THAT(text, Not(HasSubstr("[optimizer]"))) << "only with `all`";
}

TEST(DryRunTest, TheCostOfARecipeIsMeasured) {
  const Scratch scratch;
  const RecipeCost cost = cost_of(long_recipe(scratch.path()));
  EXPECT_GT(cost.batch_ms, 0);
  EXPECT_GT(cost.load_ms, 0);
  EXPECT_THAT(cost.text,
              ContainsRegex("^An epoch of 8 steps takes about [0-9.]+ s here, the training of 10ep "));
  EXPECT_EQ(try_steps(long_recipe(scratch.path()), {.steps = 3, .seconds = 0}).steps, 1);
  EXPECT_THAT(PosixDisk().list(scratch.path()), ElementsAre());
}

TEST(DryRunTest, NoMoreStepsAreTriedThanTheRunHas) {
  const Scratch scratch;
  Setting recipe = long_recipe(scratch.path());
  const auto checked = [&](const char* duration) {
    recipe.find("train")->find("max_duration")->value = std::string(duration);
    testing::internal::CaptureStderr();
    const std::string text = check_text(recipe, {.steps = 3});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << duration;
    return text;
  };
  EXPECT_THAT(checked("1ba"), HasSubstr("(the last of 1 that were tried)\n"));
  EXPECT_THAT(checked("0ba"), AllOf(HasSubstr("\n  run      0ba\n"),
                                    HasSubstr("\n  step     none: the run ends before its first\n"),
                                    Not(HasSubstr("nan")), Not(HasSubstr("\n  all "))));
}

// Of 6 x 8 + 8 + 8 x 10 + 10 numbers a third of the rows, rounded up.
TEST(DryRunTest, CheckCountsTheWholeModelWhereRanksShareIt) {
  const Scratch scratch;
  const auto checked = [&](const std::string& strategy) {
    const std::string sharding = "[sharding]\nstrategy = '" + strategy + "'\n";
    return check_text(long_recipe(scratch.path(), sharding), {.ranks = 3});
  };
  EXPECT_THAT(checked("none"), HasSubstr("\n  model    mlp: 146 parameters\n"));
  for (const char* strategy : {"optimizer", "gradients", "full"})
    EXPECT_THAT(checked(strategy),
                HasSubstr("\n  model    mlp: 146 parameters, 57 in the largest share of a rank\n"));
}

TEST(DryRunTest, CheckWarnsOfALossThatIsNotFinite) {
  const Scratch scratch;
  Setting recipe = long_recipe(scratch.path());
  const auto warned = [&recipe] {
    testing::internal::CaptureStderr();
    check_text(recipe, {.steps = 2});
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(warned(), Not(HasSubstr("not finite")));
  recipe.find("scheduler")->value = std::monostate();
  recipe.find("optimizer")->find("lr")->value = 1e300;
  EXPECT_THAT(warned(), HasSubstr("warning: the loss of the tried steps is not finite"));
}

TEST(DryRunTest, MemoryThatRunsOutIsAnError) {
  const Scratch scratch;
  Setting recipe = long_recipe(scratch.path());
  recipe.find("device")->find("memory_budget_mb")->value = 0.0001;
  EXPECT_THROW(try_steps(recipe, {}), std::exception);
}

}  // namespace
}  // namespace tutti
