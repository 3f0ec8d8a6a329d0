#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "analysis/report/charts.h"
#include "analysis/report/report_data.h"
#include "analysis/report/report_page.h"
#include "analysis/report/reported_run.h"
#include "io/formats/event_file.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"
#include "tests/analysis/recorded_runs.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

const double kNaN = std::nan("");

// A column with a value for each of the steps 1 to n.
MetricsColumn column(const std::vector<double>& values) {
  MetricsColumn made{"loss", {}, values};
  for (std::size_t i = 0; i < values.size(); ++i) made.steps.push_back(static_cast<int64_t>(i) + 1);
  return made;
}

TEST(SeriesTest, AFewValuesStayAsTheyAre) {
  const Series series = thin(column({3, 1, 2}), 3);
  ASSERT_EQ(series.buckets.size(), 3u);
  EXPECT_EQ(series.buckets[1].first, 2);
  EXPECT_EQ(series.buckets[1].last, 2);
  EXPECT_EQ(series.buckets[1].mean, 1);
}

TEST(SeriesTest, NeighboursOfManyValuesBecomeTheirMeanAndRange) {
  std::vector<double> values(1000, 2.0);
  values[499] = 50;
  values[500] = -7;
  const Series series = thin(column(values), 10);
  ASSERT_EQ(series.buckets.size(), 10u);
  EXPECT_EQ(series.buckets[4].first, 401);
  EXPECT_EQ(series.buckets[4].last, 500);
  EXPECT_DOUBLE_EQ(series.buckets[4].mean, (99 * 2.0 + 50) / 100);
  EXPECT_EQ(series.buckets[4].high, 50);
  EXPECT_EQ(series.buckets[5].low, -7);
  EXPECT_EQ(series.buckets[9].last, 1000);
}

TEST(SeriesTest, NonFiniteValuesAreApart) {
  std::vector<double> values(1000, kNaN);
  values[3] = 1;
  values[4] = INFINITY;
  const Series series = thin(column(values), 10);
  ASSERT_EQ(series.buckets.size(), 1u);
  EXPECT_EQ(series.buckets[0].mean, 1);
  EXPECT_EQ(series.not_finite_count, 999);
  EXPECT_EQ(series.not_finite.size(), 200u);
  EXPECT_EQ(series.not_finite[3], (std::pair<int64_t, double>(5, INFINITY)));
}

MetricsTable with_columns(const std::vector<const char*>& names) {
  MetricsTable metrics;
  for (const char* name : names) metrics.columns.push_back({name, {1}, {0.5}});
  return metrics;
}

TEST(ChartsTest, EveryColumnIsShownInItsGroup) {
  const MetricsTable one = with_columns({"epoch", "loss", "lr", "metrics/train/Accuracy", "since_start_s"});
  const MetricsTable two = with_columns({"loss", "metrics/eval/Accuracy", "metrics/eval/loss", "my/own"});
  std::vector<std::string> texts;
  for (const Chart& chart : charts_of({&one, &two})) {
    std::string text = chart.group + ": " + chart.title + " of";
    for (const Chart::Line& line : chart.lines) text += " " + line.column;
    texts.push_back(text);
  }
  EXPECT_THAT(texts, ElementsAre("Loss: loss of loss metrics/eval/loss",
                                 "Metrics: Accuracy of metrics/train/Accuracy metrics/eval/Accuracy",
                                 "Learning rate, throughput, memory: learning rate of lr",
                                 "Other: my/own of my/own"));
}

TEST(ChartsTest, ManyColumnsOfAPrefixAreAGroupAndTheOthersComeBeforeThem) {
  const MetricsTable run = with_columns(
      {"m/a/1", "few/1", "m/a/2", "m/a/3", "metrics/eval/CrossEntropy", "m/a/4", "own", "m/a/5", "few/2"});
  std::vector<std::string> groups;
  for (const Chart& chart : charts_of({&run})) {
    groups.push_back(chart.group + ": " + chart.title);
    EXPECT_EQ(chart.monitor, chart.group != "Metrics");
    EXPECT_EQ(chart.less_is_better, chart.title == "CrossEntropy");
  }
  EXPECT_THAT(groups, ElementsAre("Metrics: CrossEntropy", "Other: few/1", "Other: own", "Other: few/2",
                                  "m/a: m/a/1", "m/a: m/a/2", "m/a: m/a/3", "m/a: m/a/4", "m/a: m/a/5"));
}

class ReportTest : public testing::Test {
 protected:
  // The folder of a run with this metrics.jsonl.
  std::string run(const std::string& name, const std::string& metrics,
                  const std::string& recipe = "seed = 1\n") {
    const std::string dir = scratch_.path(name);
    disk_.make_folders(dir + "/log");
    write_text(dir + "/recipe.toml", recipe);
    write_text(dir + "/metrics.jsonl", metrics);
    return dir;
  }
  Json data(const std::vector<std::string>& dirs) {
    std::vector<ReportedRun> runs;
    for (const std::string& dir : dirs) runs.push_back(read_run(disk_, dir, 1 << 20));
    return Json::parse(report_json(runs));
  }
  // Journals of an attempt of two ranks: a step each, a skipped one, and how it ended.
  void record(const std::string& dir, const std::string& nonce, int64_t step,
              const std::vector<std::string>& ends) {
    const RunToRecord start{.dir = dir, .nonce = nonce};
    for (int rank = 0; rank < 2; ++rank) {
      const auto writer = start.rank(rank);
      const auto at = [](int64_t ms) { return TimePoint(std::chrono::milliseconds(1000 + ms)); };
      writer->delivery("compute", "loader", "BatchReady", at(0));
      writer->event({at(0), "compute", name(TraceKind::kBatch), step, 0});
      writer->event({at(0), "compute", name(TraceKind::kMicrobatch), step, 0});
      writer->event({at(30), "compute", name(TraceKind::kSkipped), step, 0});
      if (!ends[static_cast<std::size_t>(rank)].empty()) writer->end(ends[static_cast<std::size_t>(rank)]);
    }
  }
  std::string refused(const std::string& dir) {
    return message_of<UserError>([&] { read_run(disk_, dir, 0); });
  }

  Scratch scratch_;
  PosixDisk disk_;
};

constexpr const char* kTwoSteps =
    "{\"step\": 1, \"epoch\": 1, \"loss\": 2.5, \"step_ms\": 500.0}\n"
    "{\"step\": 2, \"epoch\": 1, \"loss\": \"nan\", \"step_ms\": 250.0}\n"
    "{\"step\": 2, \"epoch\": 1, \"metrics/eval/Accuracy\": 0.5}\n";

TEST_F(ReportTest, CurvesAreThoseOfTheFile) {
  const Json run = data({this->run("a", kTwoSteps + std::string("{\"step\": 3, \"lo"))})["runs"][0];
  EXPECT_EQ(run["steps"], 2);
  EXPECT_EQ(run["unreadable"], 0) << "a torn last line is none";
  EXPECT_EQ(run["columns"]["loss"], Json::parse(R"({"x":[1],"y":[2.5],"bad":[[2,"NaN"]],"bad_count":1})"));
  EXPECT_EQ(run["columns"]["step_ms"], Json::parse(R"({"x":[1,2],"y":[500,250]})"));
  EXPECT_EQ(run["clock"], Json::parse(R"({"x":[1,2],"y":[0.5,0.75]})"));
  EXPECT_EQ(run["results"], Json::parse(R"({"eval/Accuracy":0.5})"));
  EXPECT_EQ(run["seconds"], 0.75);
  EXPECT_TRUE(run["loss"].is_null());
}

TEST_F(ReportTest, AThinnedCurveHasRanges) {
  std::string lines;
  for (int step = 1; step <= 5000; ++step)
    lines += "{\"step\": " + std::to_string(step) + ", \"loss\": " + std::to_string(step % 2) + "}\n";
  const Json loss = data({run("a", lines)})["runs"][0]["columns"]["loss"];
  ASSERT_EQ(loss["x"].size(), 600u);
  EXPECT_EQ(loss["x"][0], 1);
  EXPECT_EQ(loss["to"][599], 5000);
  EXPECT_EQ(loss["low"][7], 0);
  EXPECT_EQ(loss["high"][7], 1);
}

TEST_F(ReportTest, TheHeadlineIsTheBestOfTheFirstMetricThatShouldGrow) {
  const auto line = [](int step, const char* metrics) {
    return "{\"step\": " + std::to_string(step) + ", \"loss\": 1, " + metrics + "}\n";
  };
  const Json page =
      data({run("a", line(1, R"("metrics/eval/CrossEntropy": 1, "metrics/eval/Accuracy": "nan")") +
                         line(2, R"("metrics/eval/CrossEntropy": 2, "metrics/eval/Accuracy": 0.5)") +
                         line(3, R"("metrics/eval/CrossEntropy": 3, "metrics/eval/Accuracy": 0.25)")),
            run("b", kTwoSteps), run("c", line(1, R"("lr": 1)"))});
  EXPECT_EQ(page["headline"], Json::parse(R"({"name":"eval/Accuracy","less_is_better":false})"));
  EXPECT_EQ(page["runs"][0]["best"], Json::parse(R"({"value":0.5,"step":2})"));
  EXPECT_TRUE(page["runs"][2]["best"].is_null());
  const Json losses = data({run("d", line(1, R"("lr": 1)"))});
  EXPECT_EQ(losses["headline"], Json::parse(R"({"name":"loss","less_is_better":true})"));
}

TEST_F(ReportTest, AConfusionMatrixIsOneMatrixAndNoCharts) {
  const Json page =
      data({run("a", kTwoSteps + std::string(R"({"step": 2, "metrics/eval/ConfusionMatrix/0/0": 3,)"
                                             R"( "metrics/eval/ConfusionMatrix/1/0": 1})"
                                             "\n"))});
  EXPECT_EQ(
      page["runs"][0]["matrices"],
      Json::parse(
          R"([{"name":"eval/ConfusionMatrix","text":"2 x 1, 75.0% on the diagonal","rows":[[3],[1]]}])"));
  EXPECT_EQ(page["runs"][0]["results"], Json::parse(R"({"eval/Accuracy":0.5})"));
  for (const Json& chart : page["charts"]) EXPECT_THAT(chart["title"], Not(HasSubstr("Confusion")));
}

// Recipe with loggers, as resolved.
constexpr const char* kLoggers =
    "run_name = 'one'\n[[loggers]]\nkind = 'tensorboard'\nlog_dir = 'tb-{run_name}'\n"
    "[[loggers]]\nkind = 'jsonl'\nfilename = 'rank{rank}.jsonl'\n";

std::vector<std::string> told(const LoggedItems& logged) {
  std::vector<std::string> texts;
  for (const LoggedItem& item : logged.items)
    texts.push_back(item.name + " " + std::to_string(item.batches) + " " + item.png.substr(0, 9) +
                    item.markdown);
  return texts;
}

TEST_F(ReportTest, ImagesAndTextsAreThoseThatTheLoggersWrote) {
  disk_.make_folders(scratch_.path("tb-one"));
  const auto write = [&](const std::string& name, int64_t restart, std::vector<int64_t> steps) {
    EventFile file(disk_, scratch_.path("tb-one/events.out.tfevents." + name), 0);
    if (restart > 0) file.restart(restart, 0);
    for (const int64_t step : steps) {
      file.scalars({{"loss", 1}}, step, 0);
      file.image("Images", {2, 3, 1, name + " " + std::to_string(step)}, step, 0);
      file.text("note/text_summary", name, step, 0);
    }
    file.text("hyperparameters/text_summary", "| name |", 0, 0);
    file.flush(false);
  };
  write("one", 0, {1, 2, 3});
  write("two", 3, {4});
  write_text(scratch_.path("rank0.jsonl"),
             "{\"type\": \"text\", \"name\": \"note\", \"batch\": 2, \"text\": \"whole\"}\n");
  EXPECT_THAT(told(logged_items(disk_, scratch_.path(""), parse_recipe(kLoggers, "r"), 100)),
              ElementsAre("Images 1 one 1", "Images 2 one 2", "Images 4 two 4", "note 1 one", "note 2 whole",
                          "note 4 two"));
}

TEST_F(ReportTest, OfManyImagesAFewAreChosenEvenlyAndNoMoreThanThereIsRoomFor) {
  disk_.make_folders(scratch_.path("tb-one"));
  EventFile file(disk_, scratch_.path("tb-one/events.out.tfevents.1"), 0);
  for (int64_t step = 0; step <= 70; ++step) file.image("a", {1, 1, 1, std::string(100, 'x')}, step, 0);
  file.flush(false);
  const auto found = [&](uint64_t bytes) {
    const LoggedItems logged = logged_items(disk_, scratch_.path(""), parse_recipe(kLoggers, "r"), bytes);
    std::vector<int64_t> batches;
    for (const LoggedItem& item : logged.items) batches.push_back(item.batches);
    EXPECT_EQ(logged.left_out, 71 - std::ssize(batches));
    return batches;
  };
  EXPECT_THAT(found(1000), ElementsAre(0, 10, 20, 30, 40, 50, 60, 70));
  EXPECT_THAT(found(250), ElementsAre(60, 70));
}

TEST_F(ReportTest, RecipesThatDifferAreSideBySide) {
  const Json recipe =
      data({run("a", kTwoSteps, "seed = 1\n[optimizer]\nlr = 0.1\n[own]\nx = 1\ny = 2\n"),
            run("b", kTwoSteps, "seed = 1\n[optimizer]\nlr = 0.2\n[own]\nx = 3\ny = 2\n")})["recipe"];
  EXPECT_EQ(recipe, Json::parse(R"([
      {"key":"seed","column":"","differs":false,"main":true,"values":["1","1"]},
      {"key":"optimizer.lr","column":"lr","differs":true,"main":true,"values":["0.1","0.2"]},
      {"key":"own.x","column":"x","differs":true,"main":false,"values":["1","3"]},
      {"key":"own.y","column":"","differs":false,"main":false,"values":["2","2"]}])"));
}

TEST_F(ReportTest, AResumedRunHasTheTimesOfAllItsAttempts) {
  const std::string dir = run("a", kTwoSteps);
  record(dir, "20260101T000000Z-0", 0, {"", ""});
  record(dir, "20260102T000000Z-0", 6, {"exit code 0", "exit code 0"});
  const Json run = data({dir})["runs"][0];
  ASSERT_EQ(run["starts"].size(), 2u);
  EXPECT_EQ(run["starts"][0]["ends"], Json::parse(R"(["",""])"));
  EXPECT_EQ(run["starts"][1]["first"], 7);
  EXPECT_EQ(run["starts"][1]["faults"], Json::parse(R"([{"step":7,"rank":0,"text":"step skipped"}])"));
  ASSERT_EQ(run["ranks"].size(), 2u);
  EXPECT_DOUBLE_EQ(run["ranks"][1]["compute"]["forward"], 0.06);
}

TEST_F(ReportTest, AFreshAttemptLeavesOutTheTimesOfEarlierOnes) {
  const std::string dir = run("a", kTwoSteps);
  record(dir, "20260101T000000Z-0", 0, {"exit code 0", "exit code 0"});
  record(dir, "20260102T000000Z-0", 0, {"exit code 0", "exit code 0"});
  const Json run = data({dir})["runs"][0];
  EXPECT_EQ(run["starts"].size(), 2u);
  EXPECT_DOUBLE_EQ(run["ranks"][1]["compute"]["forward"], 0.03);
}

TEST_F(ReportTest, TheStateIsThatOfStatus) {
  const std::string dir = run("a", kTwoSteps);
  const auto state = [&] {
    const Json run = data({dir})["runs"][0];
    return run["state"].get<std::string>() + ", " + run["ending"].get<std::string>();
  };
  EXPECT_THAT(state(), HasSubstr("killed, it left no result"));
  write_text(dir + "/result.json", R"({"ended": "error", "reason": "rank 1: the disk is on fire"})");
  EXPECT_EQ(state(), "failed, rank 1: the disk is on fire");
  write_text(dir + "/result.json",
             R"({"ended": "max_duration", "reason": "max_duration of 1ep is reached"})");
  EXPECT_EQ(state(), "ended, max_duration of 1ep is reached");
  const auto lock = disk_.lock(dir + "/.lock", "host here");
  EXPECT_EQ(state(), "running, on host here");
}

TEST_F(ReportTest, AJournalThatIsMissingIsSaidAndNoError) {
  const std::string dir = run("a", kTwoSteps);
  record(dir, "20260101T000000Z-0", 0, {"exit code 0", "exit code 0"});
  disk_.remove_all(journal_path(recorded_start(dir), 1));
  const Json run = data({dir})["runs"][0];
  EXPECT_THAT(run["starts"][0]["ends"][1].get<std::string>(), HasSubstr("rank-1.journal"));
}

TEST_F(ReportTest, ALaterStartWithoutARecordIsSaid) {
  const std::string dir = run("a", kTwoSteps), out = scratch_.path("out.html");
  record(dir, "20260101T000000Z-0", 0, {"exit code 0", "exit code 0"});
  EXPECT_THAT(write_report(disk_, {{dir}}, out), Not(HasSubstr("ignored: ")));
  const std::string later = journal_folder(dir, "29991231T235959.999Z-00000000");
  disk_.make_folders(later);
  write_text(journal_path(later, 0), "");
  EXPECT_THAT(write_report(disk_, {{dir}}, out), HasSubstr("\nignored: " + later + ": rank 0's"));
}

TEST_F(ReportTest, WarningsOfTheLogsAreFaults) {
  const std::string dir = run("a", kTwoSteps);
  record(dir, "20260101T000000Z-0", 0, {"", ""});
  const std::string warning = " warning rank 0 step 1: <memory>\n";
  write_text(dir + "/log/rank-0.log",
             "2026-11-23 19:24:27.000" + warning + "2026-11-23 19:24:26.254 info rank 0 well\n" +
                 "a line of something else\n2026-11-23 19:24:28.000 error rank 0 bad\n");
  write_text(dir + "/log/rank-1.log", "2026-11-23 19:24:27.100 warning rank 1 step 1: <memory>\n");
  const Json log = data({dir})["runs"][0]["log"];
  ASSERT_EQ(log.size(), 2u);
  EXPECT_EQ(log[0]["when"], "2026-11-23 19:24:27.000");
  EXPECT_EQ(log[0]["ranks"], Json({0, 1}));
  EXPECT_EQ(log[0]["text"], "step 1: <memory>");
  EXPECT_EQ(log[0]["error"], false);
  EXPECT_EQ(log[1]["text"], "bad");
  EXPECT_EQ(log[1]["error"], true);
}

TEST_F(ReportTest, NoTextOfAUserEndsTheScript) {
  const std::string name = "a<!--</script>";
  const std::string dir = run("x", kTwoSteps, "run_name = \"" + name + "\"\n");
  const std::string out = scratch_.path("out.html");
  write_report(disk_, {{dir}, {run("b & \"c\"", kTwoSteps)}}, out);
  const std::string page = read_text(out);
  EXPECT_THAT(page, HasSubstr("<title>x, b &amp; &quot;c&quot; - tutti report</title>"));
  EXPECT_THAT(page, HasSubstr("\\u003c!--\\u003c/script>"));
  EXPECT_THAT(page, Not(HasSubstr(name)));
  EXPECT_THAT(page, Not(HasSubstr("@DATA@")));
}

TEST_F(ReportTest, AFolderThatIsNoRunIsAUserError) {
  EXPECT_THAT(refused(scratch_.path("nowhere")), HasSubstr("nowhere: there is no such folder"));
  EXPECT_THAT(refused(scratch_.path()), HasSubstr("not a run folder: it has no recipe.toml"));
  EXPECT_THAT(refused(run("a", "")), HasSubstr("there are no steps in "));
  const std::string out = scratch_.path("no/where.html");
  const std::string dir = run("b", kTwoSteps);
  EXPECT_THAT(message_of<UserError>([&] { write_report(disk_, {{dir}}, out); }), HasSubstr(out));
}

}  // namespace
}  // namespace tutti
