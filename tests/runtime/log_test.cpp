#include "runtime/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/runtime/scratch.h"
#include "tests/runtime/stalled_pipe.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::Not;

// The output of a log on standard error.
template <class Write>
std::string printed(const std::string& path, bool to_terminal, Write write) {
  testing::internal::CaptureStderr();
  write(*make_log(path, 3, to_terminal));
  return testing::internal::GetCapturedStderr();
}

TEST(LogTest, FileHasEveryLineWithTimeLevelAndRank) {
  const Scratch folder;
  const auto log = make_log(folder.path("log/rank-3.log"), 3, false);
  log->debug("bucket {} sent");
  log->error("peer lost");
  const std::string text = read_text(folder.path("log/rank-3.log"));
  EXPECT_THAT(text, testing::ContainsRegex("^20[0-9-]+ [0-9:.]+ debug rank 3 bucket \\{\\} sent\n"));
  EXPECT_THAT(text, HasSubstr("error rank 3 peer lost\n"));
}

TEST(LogTest, ALineHasNoControlCharacters) {
  const Scratch folder;
  const auto log = make_log(folder.path("a.log"), 3, false);
  log->error("reads \x1b[31mdata");
  EXPECT_THAT(read_text(folder.path("a.log")), HasSubstr("reads \\x1b[31mdata\n"));
}

TEST(LogTest, OnlyWarningsAndErrorsReachTheTerminalBesideAFile) {
  const Scratch folder;
  const std::string seen = printed(folder.path("a.log"), true, [](Log& log) {
    log.info("step 1");
    log.warning("slow disk");
    log.error("no disk");
  });
  EXPECT_THAT(seen, Not(HasSubstr("step 1")));
  EXPECT_THAT(seen, HasSubstr("slow disk"));
  EXPECT_THAT(seen, HasSubstr("no disk"));
}

TEST(LogTest, QuietRanksPrintNothing) {
  const Scratch folder;
  EXPECT_EQ(printed(folder.path("a.log"), false, [](Log& log) { log.error("no disk"); }), "");
}

TEST(LogTest, WithoutAPathInfoReachesTheTerminal) {
  EXPECT_THAT(printed("", true, [](Log& log) { log.info("step 1"); }), HasSubstr("rank 3 step 1"));
}

TEST(LogTest, AFileThatCannotBeOpenedLeavesTheTerminal) {
  const Scratch folder;
  std::ofstream(folder.path("file")) << "not a folder";
  const std::string seen = printed(folder.path("file/a.log"), false, [](Log& log) { log.info("step 1"); });
  EXPECT_THAT(seen, HasSubstr("no log file"));
  EXPECT_THAT(seen, HasSubstr("step 1"));
}

TEST(LogTest, LinksAndPipesAreNotWrittenThrough) {
  const Scratch folder;
  write_text(folder.path("victim"), "untouched");
  std::filesystem::create_symlink("victim", folder.path("a.log"));
  ASSERT_EQ(::mkfifo(folder.path("b.log").c_str(), 0600), 0);
  const auto write = [](Log& log) { log.info("step 1"); };
  EXPECT_THAT(printed(folder.path("a.log"), false, write),
              HasSubstr("no log file: " + folder.path("a.log") + " is a link"));
  EXPECT_EQ(read_text(folder.path("victim")), "untouched");
  EXPECT_THAT(printed(folder.path("b.log"), false, write), HasSubstr("is a pipe, and no file"));
}

TEST(LogTest, ATerminalThatNobodyReadsHoldsNobodyUp) {
  const Scratch folder;
  StalledPipe pipe;
  const int before = ::dup(STDERR_FILENO);
  ::dup2(::fileno(pipe.out), STDERR_FILENO);
  make_log(folder.path("a.log"), 0, true)->warning("slow disk");
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  EXPECT_THAT(read_text(folder.path("a.log")), HasSubstr("slow disk"));
}

TEST(LogTest, ALogContinuesWhereItEnded) {
  const Scratch folder;
  make_log(folder.path("a.log"), 0, false)->info("first run");
  make_log(folder.path("a.log"), 0, false)->info("second run");
  EXPECT_THAT(read_text(folder.path("a.log")),
              testing::AllOf(HasSubstr("first run"), HasSubstr("second run")));
}

}  // namespace
}  // namespace tutti
