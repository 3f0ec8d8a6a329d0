#include "analysis/run_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;
using LoggedLines = std::vector<std::string>;

void append_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::app | std::ios::binary) << text;
}

TEST(FollowedFileTest, GivesWholeLinesOnce) {
  const Scratch scratch;
  const std::string path = scratch.path("log");
  FollowedFile file(path);
  EXPECT_EQ(file.next_line(), std::nullopt) << "no file yet";
  append_text(path, "one\n\ntw");
  EXPECT_EQ(file.next_line(), "one");
  EXPECT_EQ(file.next_line(), "");
  EXPECT_EQ(file.next_line(), std::nullopt);
  append_text(path, "o\n" + std::string(200'000, 'x') + "\nend\n");
  EXPECT_EQ(file.next_line(), "two");
  EXPECT_EQ(file.next_line(), std::string(200'000, 'x'));
  EXPECT_EQ(file.next_line(), "end");
  EXPECT_EQ(file.replaced(), 0);
  write_text(scratch.path("new"), "anew\n");
  std::filesystem::rename(scratch.path("new"), path);
  EXPECT_EQ(file.next_line(), "anew");
  EXPECT_EQ(file.replaced(), 1);
}

TEST(FollowedFileTest, LeavesLinesOfDamagedFilesOut) {
  const Scratch scratch;
  FollowedFile file(scratch.path("log"));
  append_text(scratch.path("log"), "a\n" + std::string(3 << 20, 'x') + "\nb\n");
  EXPECT_EQ(file.next_line(), "a");
  EXPECT_EQ(file.next_line(), "b");
}

class RunMessagesTest : public testing::Test {
 protected:
  RunMessagesTest() { std::filesystem::create_directories(scratch_.path("log")); }
  void log(const std::string& line) const { append_text(scratch_.path("log/rank-0.log"), line + '\n'); }
  void step(int step, double ms) const {
    append_text(metrics_, R"({"step": )" + std::to_string(step) +
                              R"(, "epoch": 1, "loss": 0.5, "lr": 0.1, "step_ms": )" + std::to_string(ms) +
                              R"(, "samples_per_s": 7})" + "\n");
  }
  void evaluation(int step) const {
    append_text(metrics_, R"({"step": )" + std::to_string(step) +
                              R"(, "epoch": 1, "metrics/eval/Accuracy": 0.75})" + "\n");
  }
  static LoggedLines lines_of(RunMessages& run, bool is_over) {
    LoggedLines lines;
    run.print_new(is_over,
                  [&](const std::string& line) { lines.push_back(line.substr(0, line.find("  loss"))); });
    return lines;
  }

  Scratch scratch_;
  std::string metrics_ = scratch_.path("metrics.jsonl");
};

TEST_F(RunMessagesTest, HasMessagesBetweenTheirSteps) {
  log("training starts");
  log("checkpoint ep1-ba2 is published");
  log("warning step 3: memory");
  for (int i = 1; i <= 3; ++i) step(i, 11'000);
  evaluation(2);
  RunMessages run(scratch_.path(), 0);
  EXPECT_THAT(
      lines_of(run, true),
      ElementsAre("training starts", "step 1  epoch 1", "step 2  epoch 1", "checkpoint ep1-ba2 is published",
                  "step 3  epoch 1", "step 2  epoch 1  eval/Accuracy 0.75", "warning step 3: memory"));
  EXPECT_THAT(lines_of(run, true), IsEmpty());
}

TEST_F(RunMessagesTest, ShowsAStepEveryTenSecondsAndTheLast) {
  RunMessages run(scratch_.path(), 0);
  for (int i = 1; i <= 8; ++i) step(i, 3'000);
  EXPECT_THAT(lines_of(run, false), ElementsAre("step 1  epoch 1", "step 5  epoch 1"));
  step(9, 3'000);
  EXPECT_THAT(lines_of(run, false), ElementsAre("step 9  epoch 1"));
  step(10, 3'000);
  EXPECT_THAT(lines_of(run, true), ElementsAre("step 10  epoch 1"));
}

TEST_F(RunMessagesTest, RepeatsNothingOfAFileThatAResumedRunReplaces) {
  RunMessages run(scratch_.path(), 0);
  for (int i = 1; i <= 3; ++i) step(i, 11'000);
  EXPECT_EQ(lines_of(run, false).size(), 3U);
  std::filesystem::remove(metrics_);
  for (int i = 1; i <= 4; ++i) step(i, 11'000);
  EXPECT_THAT(lines_of(run, false), ElementsAre("step 4  epoch 1"));
}

TEST_F(RunMessagesTest, OfAnotherRankHasItsMessagesAlone) {
  step(1, 11'000);
  append_text(scratch_.path("log/rank-3.log"), "of rank 3\n");
  RunMessages run(scratch_.path(), 3);
  EXPECT_THAT(lines_of(run, true), ElementsAre("of rank 3"));
}

}  // namespace
}  // namespace tutti
