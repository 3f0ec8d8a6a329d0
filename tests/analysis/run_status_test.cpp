#include "analysis/run_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/disk.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

class RunStatusTest : public testing::Test {
 protected:
  RunStatusTest() {
    disk_.make_folders(run_ + "/checkpoints/ep1-ba15");
    write_text(run_ + "/recipe.toml", "[train]\nmax_duration = '3ep'\n");
    write_text(run_ + "/checkpoints/ep1-ba15/manifest.json",
               R"({"manifest": {"files": [{"bytes": 2000}], "state": {"step": 15, "epoch": 1}}})");
    write_text(run_ + "/checkpoints/ep1-ba15/rank-0.h5", std::string(2000, ' '));
    write_text(run_ + "/metrics.jsonl", R"({"step": 20, "epoch": 2, "loss": 0.5, "lr": 0.1})"
                                        "\n"
                                        R"({"step": 20, "epoch": 2, "metrics/eval/Accuracy": 0.75})"
                                        "\n");
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::string run_ = scratch_.path("runs/one");
};

TEST_F(RunStatusTest, ARunUnderWayHoldsItsLock) {
  {
    const auto lock = disk_.lock(run_ + "/.lock", "host here");
    const RunStatus status = status_of(run_);
    EXPECT_EQ(status.ending.condition, RunCondition::kRunning);
    EXPECT_THAT(status_text(status, status.changed_unix_s + 180),
                HasSubstr("running, on host here\n"
                          "  steps                      20 (epoch 2), of 3ep\n"
                          "  last step                  3 minutes ago\n"));
  }
  EXPECT_EQ(status_of(run_).ending.condition, RunCondition::kKilled);
}

TEST_F(RunStatusTest, AnEndedRunSaysWhy) {
  write_text(run_ + "/result.json", R"({"ended": "error", "reason": "rank 1: no memory"})");
  EXPECT_EQ(status_of(run_).ending.condition, RunCondition::kFailed);
  write_text(run_ + "/result.json",
             R"({"ended": "max_duration", "reason": "max_duration of 3ep is reached"})");
  const RunStatus status = status_of(run_);
  EXPECT_EQ(status.ending.condition, RunCondition::kEnded);
  const std::string text = status_text(status, status.changed_unix_s);
  EXPECT_THAT(text, HasSubstr(": ended, max_duration of 3ep is reached\n"));
  EXPECT_THAT(text, HasSubstr("  eval/Accuracy              0.75  (best 0.75, step 20)\n"));
  EXPECT_THAT(text, HasSubstr("  checkpoints                1 (2.0 kB), the newest ep1-ba15\n"));
  EXPECT_THAT(status.json(), HasSubstr(R"("checkpoints":[{"name":"ep1-ba15","step":15,"bytes":2000}])"));
  EXPECT_THAT(status.json(), HasSubstr(R"("result":{"ended":"max_duration")"));
}

TEST_F(RunStatusTest, WhatIsDamagedOrLostIsSaid) {
  write_text(run_ + "/result.json", R"({"end)");
  EXPECT_EQ(status_of(run_).ending.condition, RunCondition::kEnded);
  EXPECT_THAT(status_of(run_).ending.reason, HasSubstr("result.json cannot be read"));
  disk_.remove_all(run_ + "/metrics.jsonl");
  EXPECT_EQ(status_of(run_).metrics.step, 15) << "of the newest checkpoint";
}

TEST_F(RunStatusTest, ALinkToACheckpointCountsOnce) {
  disk_.symlink("ep1-ba15", run_ + "/checkpoints/latest");
  const RunStatus status = status_of(run_);
  EXPECT_EQ(status.checkpoints.size(), 1U);
  EXPECT_LT(status.bytes, 4000U);
}

TEST_F(RunStatusTest, AFolderOfRunsIsATable) {
  const auto runs = runs_below(scratch_.path("runs"));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_THAT(table_of_runs(runs, runs[0].changed_unix_s),
              HasSubstr("one  killed  20    2      0.5   2.2 kB  0 seconds ago\n"));
}

TEST_F(RunStatusTest, ADamagedRunIsARowBesideTheOthers) {
  const std::string damaged = scratch_.path("runs/damaged");
  disk_.make_folders(damaged);
  write_text(damaged + "/recipe.toml", "[[[\n");
  const auto runs = runs_below(scratch_.path("runs"));
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_THAT(runs[0].ending.reason, HasSubstr("damaged/recipe.toml:1"));
  EXPECT_THAT(table_of_runs(runs, runs[1].changed_unix_s), HasSubstr("\ndamaged  damaged  "));
  EXPECT_THROW(status_of(damaged), UserError);
}

TEST_F(RunStatusTest, StepsOfLostLinesAreThoseOfTheNewestCheckpoint) {
  write_text(run_ + "/metrics.jsonl", R"({"step": 2, "epoch": 1, "loss": 0.5, "lr": 0.1})"
                                      "\n");
  EXPECT_EQ(status_of(run_).metrics.step, 15);
}

TEST_F(RunStatusTest, WhatIsNoRunIsAnError) {
  EXPECT_THROW(status_of(scratch_.path("none")), UserError);
  EXPECT_THROW(status_of(run_ + "/checkpoints"), UserError);
  EXPECT_THROW(runs_below(scratch_.path("none")), UserError);
}

}  // namespace
}  // namespace tutti
