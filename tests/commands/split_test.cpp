// A share of the training data that is evaluated on, and weights of classes, in whole runs.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "commands/check.h"
#include "commands/local_train.h"
#include "commands/predict.h"
#include "io/formats/run_metrics.h"
#include "io/hdf5/hdf5.h"
#include "job/make_job.h"
#include "job/recipe_catalogs.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// 60 rows of "a" and 20 of "b", whose numbers are large.
constexpr const char* kSplitRecipe = R"(
seed = 5
[model]
kind = "mlp"
hidden = [4]
[data.train]
kind = "csv"
path = "PATH"
target = "y"
normalize = true
batch_size = 16
shuffle = true
[data.eval]
split = 0.25
[optimizer]
kind = "adam"
lr = 0.05
[train]
max_duration = "4ep"
)";

class SplitRuns : public testing::Test {
 protected:
  SplitRuns() {
    std::string rows = "x,y\n";
    for (int i = 0; i < 80; ++i)
      rows += std::to_string(1'000'000 + 7 * i % 50 + (i % 4 == 0 ? 30 : 0)) + (i % 4 == 0 ? ",b\n" : ",a\n");
    write_text(folder_.path("t.csv"), rows);
  }

  Setting recipe(const std::string& in_place_of = "", const std::string& text = "") const {
    std::string written = kSplitRecipe;
    written.replace(written.find("PATH"), 4, folder_.path("t.csv"));
    if (!in_place_of.empty()) written.replace(written.find(in_place_of), in_place_of.size(), text);
    return recipe_of(written);
  }
  RunMetrics trained(const Setting& recipe, int ranks) const {
    const std::string run = folder_.path("run" + std::to_string(ranks));
    LocalRunOptions options{.ranks = ranks, .run_dir = run, .quiet = true};
    train_in_one_process(recipe, options);
    return RunMetrics::read(run + "/metrics.jsonl");
  }

  Scratch folder_;
};

std::string metrics_text(const RunMetrics& metrics) {
  std::ostringstream text;
  for (const auto& evaluated : metrics.evaluated)
    text << "metrics/" << evaluated.name << ' ' << evaluated.last << '\n';
  return text.str();
}

TEST_F(SplitRuns, EvaluationOfAFinishedRunIsThatOfItsEnd) {
  const RunMetrics end = trained(recipe(), 1);
  ASSERT_EQ(end.step, 16);  // 4 epochs of 60 samples
  ASSERT_EQ(end.evaluated.size(), 3U);
  EXPECT_THAT(eval_text(recipe(), folder_.path("run1")), HasSubstr(metrics_text(end)));
  const std::string out = folder_.path("p.h5");
  predict_text(recipe(), {.checkpoint = folder_.path("run1"), .evaluator = "eval", .out = out});
  const at::Tensor classes = Hdf5File(out).read("output").argmax(1);
  EXPECT_EQ(classes.size(0), 20);
  // The held-out rows have 15 of "a", as many as their share.
  EXPECT_THAT(check_text(recipe(), {.ranks = 1, .steps = 0}),
              testing::AllOf(HasSubstr("split    60 of 80 samples to train on, 20 held out for eval"),
                             HasSubstr("classes  a: 45, b: 15 training samples")));
}

TEST_F(SplitRuns, PredictionsNameTheRowsOfTheFile) {
  trained(recipe(), 1);
  const auto rows_of = [&](const std::string& data) {
    const std::string out = folder_.path("p.csv");
    predict_text(recipe(), {.checkpoint = folder_.path("run1"), .data = data, .out = out});
    std::map<std::string, std::string> classes;
    std::istringstream lines(read_text(out));
    for (std::string line; std::getline(lines, line);) {
      const std::size_t row_end = line.find(','), class_end = line.rfind(',');
      classes[line.substr(0, row_end)] = line.substr(row_end, class_end - row_end);
    }
    return classes;
  };
  const auto held_out = rows_of(""), all = rows_of(folder_.path("t.csv"));
  EXPECT_EQ(held_out.size(), 1U + 20);
  EXPECT_EQ(all.size(), 1U + 80);
  for (const auto& [row, name] : held_out) EXPECT_EQ(all.at(row), name) << row;
  EXPECT_FALSE(held_out.contains("1") && held_out.contains("2") && held_out.contains("3"))
      << "are counted anew";
}

TEST_F(SplitRuns, RanksSeeTheSameParts) {
  const RunMetrics one = trained(recipe(), 1), three = trained(recipe(), 3);
  for (std::size_t i = 0; i < one.evaluated.size(); ++i)
    EXPECT_NEAR(one.evaluated[i].last, three.evaluated[i].last, 1e-5) << one.evaluated[i].name;
}

Setting loss_of(const Setting& recipe) {
  return make_job(resolve_recipe(recipe), {.makes_folders = false}).recipe.at("model").at("loss");
}

TEST_F(SplitRuns, BalancedWeightsAreOfTheTrainingPart) {
  const auto weight_of = [&](const std::string& text) {
    return loss_of(recipe("hidden = [4]", "hidden = [4]\nloss = { kind = 'cross_entropy', " + text + " }"))
        .at("weight")
        .numbers();
  };
  EXPECT_THAT(weight_of("weight = 'balanced'"), ElementsAre(60.0 / (2 * 45), 60.0 / (2 * 15)));
  EXPECT_THAT(weight_of("class_weights = 'balanced'"), ElementsAre(60.0 / (2 * 45), 60.0 / (2 * 15)));
  EXPECT_THAT(weight_of("weight = [1, 2]"), ElementsAre(1, 2));
}

TEST_F(SplitRuns, RunWithBalancedWeightsIsResumed) {
  const Setting whole =
      recipe("hidden = [4]", "hidden = [4]\nloss = { kind = 'cross_entropy', weight = 'balanced' }");
  const RunMetrics at_once = trained(whole, 1);
  const LocalRunOptions options{
      .ranks = 1, .run_dir = folder_.path("parts"), .resume = "auto", .quiet = true};
  for (const char* duration : {"2ep", "4ep"}) {
    Setting part = whole;
    part.find("train")->find("max_duration")->value = std::string(duration);
    train_in_one_process(part, options);
  }
  const RunMetrics in_parts = RunMetrics::read(folder_.path("parts") + "/metrics.jsonl");
  EXPECT_EQ(metrics_text(in_parts), metrics_text(at_once));
}

TEST_F(SplitRuns, PathOfTheCommandLineTakesTheSharesPlace) {
  write_text(folder_.path("new.csv"), "y,x\na,1000000\nb,1000040\n");
  std::string written = kSplitRecipe;
  written.replace(written.find("PATH"), 4, folder_.path("t.csv"));
  Setting recipe = recipe_of(written);
  recipe.find("data")->find("eval")->table().emplace_back(
      "path", Setting(folder_.path("new.csv"), "data.eval.path", {kOverrideFile}));
  const Job job = make_job(resolve_recipe(recipe), {.makes_folders = false});
  EXPECT_EQ(job.train->size(), 80);
  EXPECT_EQ(job.evaluators.at(0).data->size(), 2);
}

// Of two transforms of training, the file has the one that draws nothing.
TEST(OtherFileThanTheShare, HasTheTransformsThatDrawNothing) {
  Setting written = recipe_of(
      "[model]\nkind = 'mlp'\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ep'\n[data.train]\nkind = "
      "'image_folder'\npath = 'a'\nbatch_size = 1\nscale = 0.5\n[[data.train.transforms]]\nkind = 'flip'\n"
      "[[data.train.transforms]]\nkind = 'resize'\nsize = [8, 8]\n[data.eval]\nsplit = 0.25\n");
  written.find("data")->find("eval")->table().emplace_back(
      "path", Setting(std::string("b"), "data.eval.path", {kOverrideFile}));
  const Setting eval = resolve_recipe(written).at("data").at("eval");
  EXPECT_EQ(eval.at("kind").text(), "image_folder");
  EXPECT_EQ(eval.at("scale").number(), 0.5);
  ASSERT_EQ(eval.at("transforms").array().size(), 1U);
  EXPECT_EQ(eval.at("transforms").array()[0].at("kind").text(), "resize");
}

}  // namespace
}  // namespace tutti
