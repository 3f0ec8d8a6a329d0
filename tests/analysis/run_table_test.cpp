#include "analysis/comparison/run_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

#include "analysis/comparison/compared_runs.h"
#include "analysis/comparison/short_names.h"
#include "analysis/run_status.h"
#include "io/formats/matrix_metrics.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// Four runs that differ in lr, warm-up and an algorithm's alpha; one fails, and one is damaged if a test says
// so.
class RunTableTest : public testing::Test {
 protected:
  RunTableTest() {
    add("a", "0.1", "5ba", 0.75, 0.5);
    add("b", "0.01", "10ba", 0.5, 0.25);
    add("c", "0.001", "1ep", 0.875, 0.125);
    add("d", "1", "2ba", 0.25, 2.5, "");
    write_text(runs_ + "/d/result.json", R"({"ended": "error", "reason": "step 3, Compute: NaNMonitor"})");
  }

  void add(const std::string& name, const std::string& lr, const std::string& warmup, double accuracy,
           double loss, const std::string& best = "") {
    disk_.make_folders(runs_ + '/' + name);
    write_text(runs_ + '/' + name + "/recipe.toml",
               "run_name = '" + name + "'\n[optimizer]\nkind = 'sgd'\nlr = " + lr +
                   "\n[scheduler]\nt_warmup = '" + warmup + "'\n[[algorithms]]\nkind = 'mixup'\nalpha = " +
                   lr + "\n[train]\nmax_duration = '40ba'\n" + best);
    const auto line = [](const std::string& what) { return "{\"step\": 20, \"epoch\": 2, " + what + "}\n"; };
    write_text(
        runs_ + '/' + name + "/metrics.jsonl",
        line("\"loss\": " + std::to_string(loss) + ", \"lr\": 0.1, \"step_ms\": 250") +
            (name == "d" ? "" : line("\"metrics/eval/CrossEntropy\": " + std::to_string(loss))) +
            (name == "d" ? "" : line("\"metrics/eval/MulticlassAccuracy\": " + std::to_string(accuracy))));
  }

  std::vector<std::string> names(const RunQuery& query) const {
    std::vector<std::string> names;
    for (const RunStatus& run : RunTable(runs_below(runs_), query).runs())
      names.push_back(run.run_dir.substr(run.run_dir.rfind('/') + 1));
    return names;
  }
  std::vector<std::string> where(const std::string& condition) const { return names({.where = {condition}}); }
  std::string refused(const RunQuery& query) const {
    return message_of<UserError>([&] { names(query); });
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::string runs_ = scratch_.path("runs");
};

TEST_F(RunTableTest, ARowHasStateProgressHeadlineAndDifferingKeys) {
  EXPECT_THAT(
      RunTable(runs_below(runs_), {.by_headline = true}).text(0, 0),
      HasSubstr(
          "run  state   progress    best MulticlassAccuracy  alpha  lr     t_warmup  size    last step\n"
          "c    killed  step 20/40  0.875                    0.001  0.001  1ep "));
  EXPECT_THAT(RunTable(runs_below(runs_), {}).text(0, 0),
              HasSubstr("d    failed  step 20/40  -                        1      1      2ba "));
}

TEST_F(RunTableTest, TheFailureOfARunIsInItsRow) {
  EXPECT_THAT(RunTable(runs_below(runs_), {}).text(0, 0), HasSubstr("  step 3, Compute: NaNMonitor\n"));
}

TEST_F(RunTableTest, SortingIsByTheDirectionOfTheMetricAndLeavesRunsWithoutItLast) {
  EXPECT_THAT(names({.sort = "accuracy"}), ElementsAre("c", "a", "b", "d"));
  EXPECT_THAT(names({.sort = "eval/CrossEntropy"}), ElementsAre("c", "b", "a", "d"));
  EXPECT_THAT(names({.sort = "loss"}), ElementsAre("c", "b", "a", "d"));
  EXPECT_THAT(names({.sort = "lr"}), ElementsAre("c", "b", "a", "d")) << "a key, by its number";
}

TEST_F(RunTableTest, AMetricWithANameOfItsOwnHasTheDirectionOfItsKind) {
  for (const auto& [name, first, last] : {std::tuple("e", "0.5", "0.4"), {"f", "0.9", "0.3"}}) {
    add(name, "1", "1ba", 0.5, 0.5,
        "[data.eval]\nmetrics = [{ kind = 'MeanSquaredError', name = 'price' }]\n");
    std::ofstream(runs_ + '/' + name + "/metrics.jsonl", std::ios::app)
        << "{\"step\": 10, \"epoch\": 1, \"metrics/eval/price\": " << first << "}\n"
        << "{\"step\": 20, \"epoch\": 2, \"metrics/eval/price\": " << last << "}\n";
  }
  const auto sorted = names({.where = {"price>0"}, .sort = "price"});
  EXPECT_THAT(sorted, ElementsAre("f", "e"));
  const RunTable table(runs_below(runs_), {.sort = "price"});
  EXPECT_EQ(table.runs()[0].metrics.evaluated.back().best, 0.3);
}

TEST_F(RunTableTest, ConditionsKnowNumbersTimesAndTexts) {
  EXPECT_THAT(where("lr>0.01"), ElementsAre("a", "d"));
  EXPECT_THAT(where("lr >= 1e-2"), ElementsAre("a", "b", "d"));
  EXPECT_THAT(where("t_warmup<10ba"), ElementsAre("a", "d")) << "1ep is no number of batches";
  EXPECT_THAT(where("state=failed"), ElementsAre("d"));
  EXPECT_THAT(where("optimizer.kind!=sgd"), ElementsAre());
  EXPECT_THAT(where("accuracy>0.6"), ElementsAre("a", "c"));
  EXPECT_THAT(names({.where = {"lr<1", "CrossEntropy<0.4"}}), ElementsAre("b", "c"));
}

TEST_F(RunTableTest, UnknownAmbiguousAndMalformedConditionsAreErrors) {
  EXPECT_THAT(refused({.where = {"optimiser.lr=1"}}),
              HasSubstr("no run has a metric or a key optimiser.lr; did you mean optimizer.lr?"));
  EXPECT_THAT(refused({.sort = "acuracy"}), HasSubstr("--sort: no run has a metric or a key acuracy"));
  EXPECT_THAT(refused({.where = {"kind=sgd"}}), HasSubstr("kind may be algorithms.0.kind, optimizer.kind"));
  EXPECT_THAT(refused({.where = {"lr"}}), HasSubstr("expected a key or metric, one of = != < <= > >="));
  EXPECT_THAT(refused({.where = {"lr=>1"}}), HasSubstr("--where lr=>1: expected"));
  EXPECT_THAT(refused({.where = {"optimizer.kind>1"}}), HasSubstr("which is neither more nor less than 1"));
}

TEST_F(RunTableTest, ADamagedRunStaysARow) {
  disk_.make_folders(runs_ + "/e");
  write_text(runs_ + "/e/recipe.toml", "[[[\n");
  write_text(runs_ + "/e/metrics.jsonl", "");
  EXPECT_THAT(names({.where = {"lr<0.01"}, .sort = "accuracy"}), ElementsAre("c", "e"));
  EXPECT_THAT(RunTable(runs_below(runs_), {}).text(0, 0), HasSubstr("\ne    damaged  -           -  "));
}

TEST_F(RunTableTest, TheMetricThatARecipeWatchesIsTheHeadline) {
  add("w", "0.1", "5ba", 0.75, 0.5, "[checkpoint]\nbest = {metric = 'CrossEntropy', mode = 'max'}\n");
  const RunTable table(runs_below(runs_), {.by_headline = true});
  EXPECT_EQ(table.headline().name, "eval/CrossEntropy");
  EXPECT_FALSE(table.headline().less_is_better);
  EXPECT_EQ(table.runs().front().run_dir, runs_ + "/a");
}

TEST_F(RunTableTest, ColumnsThatDoNotFitAreNamed) {
  const std::string text = RunTable(runs_below(runs_), {}).text(0, 80);
  EXPECT_THAT(text, HasSubstr("left out, for lack of width: size, "));
  EXPECT_THAT(text, HasSubstr("best MulticlassAccuracy"));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    EXPECT_LE(end - at, 80U) << text.substr(at, end - at);
    at = end + 1;
  }
}

TEST_F(RunTableTest, CsvHasAllMetricsAndQuotesFields) {
  const std::string csv = RunTable(runs_below(runs_), {}).csv();
  EXPECT_THAT(csv,
              HasSubstr("run,state,reason,step,epoch,max_duration,loss,samples_per_s,bytes,eval/CrossEntropy,"
                        "best eval/CrossEntropy,eval/MulticlassAccuracy,best eval/MulticlassAccuracy,"
                        "algorithms.0.alpha,optimizer.lr,scheduler.t_warmup\n"));
  EXPECT_THAT(csv, HasSubstr(",\"step 3, Compute: NaNMonitor\",20,2,40ba,2.5,,"));
  EXPECT_THAT(csv, HasSubstr(",0.5,0.5,0.75,0.75,0.1,0.1,5ba\n"));
}

TEST_F(RunTableTest, ComparedRunsAreColumnsWithAStarAtTheBest) {
  const std::string text = comparison_text({runs_ + "/a", runs_ + "/b", runs_ + "/d"}, 0);
  EXPECT_THAT(text, HasSubstr("state               killed           killed           failed\n"));
  EXPECT_THAT(
      text, HasSubstr("failure             -                -                step 3, Compute: NaNMonitor\n"));
  EXPECT_THAT(text, HasSubstr("training time       0.25 s           0.25 s           0.25 s\n"));
  EXPECT_THAT(text, HasSubstr("MulticlassAccuracy  0.75             0.5              -\n"
                              "  best              0.75* (step 20)  0.5 (step 20)    -\n"));
  EXPECT_THAT(text, HasSubstr("  best              0.5 (step 20)    0.25* (step 20)  -\n"));
  EXPECT_THAT(text, HasSubstr("optimizer.lr        0.1              0.01"));
  EXPECT_THAT(text, Not(HasSubstr("run_name")));
}

TEST(ShortNamesTest, ANameIsAsShortAsItMayBe) {
  const std::vector<std::string> names = {"optimizer.lr", "scheduler.lr", "algorithms.0.alpha", "a.0"};
  EXPECT_EQ(short_name("optimizer.lr", names), "optimizer.lr");
  EXPECT_EQ(short_name("algorithms.0.alpha", names), "alpha");
  EXPECT_EQ(short_name("a.0", names), "a.0");
  EXPECT_THAT(distinct_names({"runs/a/", "old/b", "runs/b"}), ElementsAre("a", "old/b", "runs/b"));
}

TEST(MatrixMetricsTest, CellsAreOneMatrix) {
  EXPECT_FALSE(matrix_cell("eval/F1/3"));
  EXPECT_FALSE(matrix_cell("3/7"));
  EXPECT_EQ(matrix_cell("eval/M/3/7")->column, 7U);
  const auto matrices = metric_matrices({{"x/M/0/0", 3}, {"loss", 9}, {"x/M/1/0", 1}, {"x/M/1/1", 4}});
  ASSERT_EQ(matrices.size(), 1U);
  EXPECT_EQ(matrices[0].text(), "2 x 2, 87.5% on the diagonal");
}

}  // namespace
}  // namespace tutti
