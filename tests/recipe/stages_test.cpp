#include "recipe/stages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kWhole = R"(run_name = "whole"
[model]
kind = "mlp"
weights = "start.safetensors"
[data.train]
kind = "synthetic"
samples = 48
batch_size = 12
[optimizer]
kind = "sgd"
lr = 0.1
momentum = 0.9
[train]
max_duration = "8ep"
[checkpoint]
load_path = "earlier"
load_ignore_keys = ["model.head*"]
[[algorithms]]
kind = "label_smoothing"
[[algorithms]]
kind = "gradient_clipping"
clipping_type = "norm"
clipping_threshold = 1.0
)";

Setting staged(const std::string& stages, const std::vector<std::string>& overrides = {}) {
  return parse_recipe(kWhole + stages, "recipe.toml", overrides);
}

std::vector<Stage> resolved_stages(const std::string& stages,
                                   const std::vector<std::string>& overrides = {}) {
  return resolve_stages(staged(stages, overrides));
}

std::string stages_error(const std::string& stages, const std::vector<std::string>& overrides = {}) try {
  resolved_stages(stages, overrides);
  return "";
} catch (const UserError& error) {
  return error.what();
}

std::string value_at(const Stage& stage, const char* section, const char* key) {
  return stage.recipe.at(section).at(key).toml();
}

TEST(StagesTest, EachStageIsTheRecipeWithItsOwnKeys) {
  const auto stages = resolved_stages(
      "[[stages]]\nname = \"head\"\nmodel.freeze = [\"body.*\"]\n[[stages]]\noptimizer.lr = 0.01\n"
      "train.max_duration = \"2ep\"\nalgorithms = []\n");
  ASSERT_EQ(stages.size(), 2U);
  EXPECT_EQ(stages[0].name, "head");
  EXPECT_EQ(value_at(stages[0], "model", "freeze"), "[\"body.*\"]");
  EXPECT_EQ(value_at(stages[0], "optimizer", "lr"), "0.1");
  EXPECT_EQ(stages[0].recipe.at("algorithms").array().size(), 2U);
  EXPECT_FALSE(stages[1].recipe.at("model").has("freeze"));
  EXPECT_EQ(value_at(stages[1], "optimizer", "lr"), "0.01");
  EXPECT_EQ(value_at(stages[1], "optimizer", "momentum"), "0.9");
  EXPECT_EQ(value_at(stages[1], "train", "max_duration"), "\"2ep\"");
  EXPECT_TRUE(stages[1].recipe.at("algorithms").array().empty());
}

TEST(StagesTest, WhereARunStartsIsOfTheFirstStageAlone) {
  const auto stages =
      resolved_stages("[[stages]]\n[[stages]]\n[[stages]]\ncheckpoint.load_weights_only = false\n");
  EXPECT_TRUE(stages[0].recipe.at("checkpoint").has("resume"));
  EXPECT_TRUE(stages[0].recipe.at("model").has("weights"));
  EXPECT_EQ(value_at(stages[0], "checkpoint", "load_weights_only"), "false");
  EXPECT_FALSE(stages[1].recipe.at("checkpoint").has("resume"));
  EXPECT_FALSE(stages[1].recipe.at("model").has("weights"));
  EXPECT_EQ(value_at(stages[1], "checkpoint", "load_weights_only"), "true");
  EXPECT_EQ(value_at(stages[1], "checkpoint", "load_ignore_keys"), "[]");
  EXPECT_EQ(value_at(stages[2], "checkpoint", "load_weights_only"), "false");
}

TEST(StagesTest, ATableOfAnotherKindReplacesTheTable) {
  const auto stages = resolved_stages("[[stages]]\n[stages.optimizer]\nkind = \"adam\"\nlr = 0.5\n",
                                      {"optimizer.weight_decay=0.25"});
  EXPECT_EQ(value_at(stages[0], "optimizer", "kind"), "\"adam\"");
  EXPECT_EQ(value_at(stages[0], "optimizer", "lr"), "0.5");
  EXPECT_EQ(value_at(stages[0], "optimizer", "weight_decay"), "0.25");
}

TEST(StagesTest, ASetKeyIsOfAllStagesAndAKeyOfAStageIsItsOwn) {
  const auto stages = resolved_stages("[[stages]]\noptimizer.lr = 0.2\n[[stages]]\noptimizer.lr = 0.3\n",
                                      {"optimizer.lr=0.4", "stages.1.train.max_duration=3ep"});
  for (const Stage& stage : stages) EXPECT_EQ(value_at(stage, "optimizer", "lr"), "0.4");
  EXPECT_EQ(value_at(stages[0], "train", "max_duration"), "\"8ep\"");
  EXPECT_EQ(value_at(stages[1], "train", "max_duration"), "\"3ep\"");
}

TEST(StagesTest, AStageIsChosenByItsNumber) {
  const std::string two = "[[stages]]\n[[stages]]\noptimizer.lr = 0.3\n";
  EXPECT_EQ(resolve_recipe(staged(two, {"stage=2"})).at("optimizer").at("lr").number(), 0.3);
  EXPECT_THAT(stages_error(two, {"stage=3"}), HasSubstr("stage = 3: expected the number of a stage, 1 to 2"));
  EXPECT_THAT(stages_error("", {"stage=1"}), HasSubstr("the recipe has no [[stages]]"));
  try {
    resolve_recipe(staged(two));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(),
                HasSubstr("this command takes one stage, with the number 1 to 2: --set stage=1"));
  }
}

TEST(StagesTest, MistakesOfAllStagesAreReportedByLine) {
  const std::string error = stages_error(
      "[[stages]]\noptimizer.lr = -1\n[[stages]]\n[[stages]]\ntrain.max_duratoin = \"1ep\"\nrun_name = "
      "\"x\"\n");
  EXPECT_THAT(error, AllOf(HasSubstr("recipe.toml:29: stages.2.run_name"), HasSubstr("of the whole run")));
  const std::string others =
      stages_error("[[stages]]\noptimizer.lr = -1\n[[stages]]\n[[stages]]\ntrain.max_duratoin = \"1ep\"\n");
  EXPECT_THAT(others, AllOf(HasSubstr("recipe.toml:25: optimizer.lr = -1"),
                            HasSubstr("recipe.toml:28: train.max_duratoin"), HasSubstr("2 errors")));
}

TEST(StagesTest, AnErrorOfTheWholeRecipeIsReportedOnce) {
  const std::string error = stages_error("[[stages]]\n[[stages]]\n", {"optimizer.lr=-2"});
  EXPECT_THAT(error, AllOf(HasSubstr("optimizer.lr = -2"), testing::Not(HasSubstr("2 errors"))));
}

TEST(StagesTest, LaterStagesNameNoStart) {
  for (const char* start : {"checkpoint.load_path = \"x\"", "model.weights = \"x\""})
    EXPECT_THAT(stages_error(std::string("[[stages]]\n[[stages]]\n") + start + '\n'),
                HasSubstr("starts from the weights of the stage before"));
}

TEST(StagesTest, StagesAreTables) {
  EXPECT_THAT(stages_error("[stages]\n"), HasSubstr("expected [[stages]], a table for each stage"));
}

}  // namespace
}  // namespace tutti
