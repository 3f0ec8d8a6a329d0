#include "analysis/run_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "analysis/comparison/run_table.h"
#include "runtime/disk.h"
#include "runtime/error.h"
#include "runtime/text.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

// The test's rights are those of another user while this exists: root may read everything.
class Unprivileged {
 public:
  Unprivileged() : before_(::geteuid()) { static_cast<void>(::seteuid(before_ == 0 ? kNobody : before_)); }
  ~Unprivileged() { static_cast<void>(::seteuid(before_)); }
  Unprivileged(const Unprivileged&) = delete;

 private:
  static constexpr uid_t kNobody = 65534;
  uid_t before_;
};

std::string table_of_runs(const std::vector<RunStatus>& runs, int64_t now_unix_s) {
  return RunTable(runs, {}).text(now_unix_s, 0);
}

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

  // A folder beside `run_`, as good as that until a test changes it.
  std::string bad_run(const std::string& name) {
    const std::string folder = scratch_.path("runs/" + name);
    disk_.remove_all(folder);
    std::filesystem::copy(run_, folder, std::filesystem::copy_options::recursive);
    return folder;
  }
  // The error shown for the run of this name in the table of all runs, where the good run is unchanged.
  std::string wrong_with(const std::string& name) const {
    const auto runs = runs_below(scratch_.path("runs"));
    EXPECT_EQ(runs.size(), 2U);
    std::string wrong;
    for (const RunStatus& run : runs) {
      const bool damaged = run.ending.condition == RunCondition::kDamaged;
      EXPECT_EQ(damaged, run.run_dir.ends_with('/' + name)) << run.run_dir;
      if (damaged) wrong = run.ending.reason;
    }
    EXPECT_THAT(table_of_runs(runs, 0), HasSubstr('\n' + name + "  damaged  -"));
    EXPECT_THAT(table_of_runs(runs, 0), HasSubstr("  " + wrong.substr(0, wrong.find('\n')) + '\n'));
    return wrong;
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

TEST_F(RunStatusTest, DamagedAndLostFilesAreReported) {
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
              HasSubstr("run  state   progress   best Accuracy  size    last step\n"
                        "one  killed  epoch 2/3  0.75           2.2 kB  0 seconds ago\n"));
}

TEST_F(RunStatusTest, ADamagedRunIsARowBesideTheOthers) {
  const std::string damaged = bad_run("damaged");
  write_text(damaged + "/recipe.toml", "[[[\n");
  EXPECT_THAT(wrong_with("damaged"), HasSubstr("damaged/recipe.toml:1"));
  EXPECT_THROW(status_of(damaged), UserError);
}

TEST_F(RunStatusTest, AFolderWithOnlyARecipeIsNoRun) {
  disk_.make_folders(scratch_.path("runs/mine"));
  write_text(scratch_.path("runs/mine/recipe.toml"), "");
  EXPECT_EQ(runs_below(scratch_.path("runs")).size(), 1U);
  EXPECT_THAT(message_of<UserError>([&] { status_of(scratch_.path("runs/mine")); }),
              HasSubstr("not a run folder: it has a recipe.toml and nothing else that a run leaves"));
  const auto runs_with = [&](const std::string& left) {
    const std::string path = scratch_.path("runs/mine/" + left);
    disk_.make_folders(std::filesystem::path(path).parent_path());
    write_text(path, "");
    const std::size_t runs = runs_below(scratch_.path("runs")).size();
    for (const char* name : {"log", "journal", "checkpoints"})
      disk_.remove_all(scratch_.path("runs/mine/") + name);
    disk_.remove_all(path);
    return runs;
  };
  for (const char* left : {".lock", "metrics.jsonl", "result.json", "log/rank-0.log",
                           "journal/1/rank-0.journal", "checkpoints/ep1-ba15/manifest.json"})
    EXPECT_EQ(runs_with(left), 2U) << left;
  for (const char* left : {"log", "log/build.txt", "journal", "journal/2024.txt", "journal/1/rank-0.txt",
                           "checkpoints", "checkpoints/one/model.pt"})
    EXPECT_EQ(runs_with(left), 1U) << left;
}

TEST_F(RunStatusTest, JsonOfAnotherTypeIsSaidAndNoError) {
  write_text(run_ + "/result.json", R"({"ended": 5, "reason": []})");
  EXPECT_THAT(status_of(run_).ending.reason, HasSubstr("result.json cannot be read"));
  EXPECT_THAT(table_of_runs(runs_below(scratch_.path("runs")), 0),
              HasSubstr(" ago; result.json cannot be read"));
  write_text(run_ + "/metrics.jsonl", R"({"step": "x", "epoch": {}, "lr": 1e300, "loss": [], "lr": 0.1})"
                                      "\n"
                                      R"({"step": 1e300, "metrics/eval/Accuracy": 0.75})"
                                      "\n");
  EXPECT_EQ(status_of(run_).metrics.epoch, 1) << "of the checkpoint";
  write_text(run_ + "/checkpoints/ep1-ba15/manifest.json", R"({"manifest": {"files": 7}})");
  EXPECT_EQ(status_of(run_).checkpoints.at(0).problem, "a part of it is of another type than expected");
}

TEST_F(RunStatusTest, AFolderThatMayNotBeReadIsARowBesideTheOthers) {
  const std::string theirs = bad_run("theirs");
  ASSERT_EQ(::chmod(scratch_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(theirs.c_str(), 0), 0);
  const Unprivileged nobody;
  if (::eaccess(theirs.c_str(), X_OK) == 0) GTEST_SKIP() << "may read everything";
  EXPECT_EQ(wrong_with("theirs"), theirs + ": cannot be read: Permission denied");
  EXPECT_EQ(message_of<UserError>([&] { status_of(theirs); }),
            theirs + ": cannot be read: Permission denied");
}

TEST_F(RunStatusTest, ANameThatIsNoUtf8IsARowAndValidJson) {
  const std::string bad = bad_run("bad\xff\xfename");
  const RunStatus status = status_of(bad);
  EXPECT_TRUE(is_utf8(status.json()));
  EXPECT_THAT(status.json(), HasSubstr("bad\xef\xbf\xbd\xef\xbf\xbdname"));
  EXPECT_EQ(runs_below(scratch_.path("runs")).size(), 2U);
}

// Opening a pipe for reading waits for a writer.
TEST_F(RunStatusTest, APipeInPlaceOfAFileIsSaid) {
  for (const char* name : {"recipe.toml", "metrics.jsonl", "result.json", ".lock"}) {
    const std::string bad = bad_run("pipe");
    disk_.remove_all(bad + '/' + name);
    ASSERT_EQ(::mkfifo((bad + '/' + name).c_str(), 0600), 0);
    EXPECT_THAT(wrong_with("pipe"), HasSubstr(std::string(name) + ": ")) << name;
    EXPECT_THAT(wrong_with("pipe"), HasSubstr("is a pipe, and no file")) << name;
    EXPECT_THROW(status_of(bad), UserError);
  }
  const std::string manifest = run_ + "/checkpoints/ep1-ba15/manifest.json";
  disk_.remove_all(manifest);
  ASSERT_EQ(::mkfifo(manifest.c_str(), 0600), 0);
  EXPECT_THAT(status_of(run_).checkpoints.at(0).problem, HasSubstr("is a pipe, and no file"));
}

// Files with holes: of little disk, and of more than the memory.
TEST_F(RunStatusTest, FilesFarTooLargeAreNotRead) {
  for (const char* name : {"recipe.toml", "result.json"}) {
    const std::string bad = bad_run("large");
    write_text(bad + '/' + name, "");
    std::filesystem::resize_file(bad + '/' + name, uint64_t{1} << 42);
    EXPECT_THAT(wrong_with("large"), HasSubstr(std::string(name) + ": cannot ")) << name;
    EXPECT_THAT(wrong_with("large"),
                HasSubstr("has 4,398,046,511,104 bytes, and at most 16,777,216 are read"));
    EXPECT_THROW(status_of(bad), UserError);
  }
  std::filesystem::resize_file(run_ + "/checkpoints/ep1-ba15/manifest.json", uint64_t{1} << 42);
  disk_.remove_all(scratch_.path("runs/large"));
  EXPECT_THAT(status_of(run_).checkpoints.at(0).problem, HasSubstr("at most 1,073,741,824 are read"));
}

TEST_F(RunStatusTest, AStatusWritesNoFileAndFollowsNoLinkOut) {
  const std::string victim = scratch_.path("victim"), text = "host of somebody\n";
  write_text(victim, text);
  status_of(run_);
  EXPECT_FALSE(disk_.exists(run_ + "/.lock"));
  for (const char* name : {".lock", "recipe.toml", "metrics.jsonl", "result.json", "journal"}) {
    const std::string bad = bad_run("linked");
    disk_.remove_all(bad + '/' + name);
    disk_.symlink(victim, bad + '/' + name);
    EXPECT_THAT(wrong_with("linked"), HasSubstr("is a link")) << name;
    EXPECT_EQ(read_text(victim), text) << name;
  }
  const std::string inside = bad_run("linked");
  disk_.rename(inside + "/metrics.jsonl", inside + "/kept");
  disk_.symlink("kept", inside + "/metrics.jsonl");
  EXPECT_EQ(status_of(inside).metrics.step, 20);
}

TEST_F(RunStatusTest, StepsOfLostLinesAreThoseOfTheNewestCheckpoint) {
  write_text(run_ + "/metrics.jsonl", R"({"step": 2, "epoch": 1, "loss": 0.5, "lr": 0.1})"
                                      "\n");
  EXPECT_EQ(status_of(run_).metrics.step, 15);
}

TEST_F(RunStatusTest, AFolderThatIsNoRunIsAnError) {
  EXPECT_THROW(status_of(scratch_.path("none")), UserError);
  EXPECT_THROW(status_of(run_ + "/checkpoints"), UserError);
  EXPECT_THROW(runs_below(scratch_.path("none")), UserError);
}

}  // namespace
}  // namespace tutti
