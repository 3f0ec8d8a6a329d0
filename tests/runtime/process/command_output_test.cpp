#include "runtime/process/command_output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cerrno>
#include <cstdlib>

#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

std::string all_of(CommandOutput& output) {
  std::string all, bytes(7, ' ');
  while (const std::size_t count = output.read(bytes)) all += bytes.substr(0, count);
  return all;
}

std::string failure_of(const std::string& command) {
  CommandOutput output(command);
  all_of(output);
  return output.failure();
}

TEST(CommandOutput, IsReadToItsEnd) {
  CommandOutput output("printf 'one\\ntwo'; printf three");
  EXPECT_EQ(all_of(output), "one\ntwothree");
  EXPECT_EQ(output.failure(), "");
}

TEST(CommandOutput, OfAFailedCommandTheErrorsAreKeptInAFile) {
  Scratch scratch;
  setenv("TMPDIR", scratch.path().c_str(), 1);
  const std::string before = "exit code 3; what it printed last is in " + scratch.path("tutti-command-"),
                    failure = failure_of("echo first >&2; echo last >&2; exit 3");
  EXPECT_THAT(failure, testing::StartsWith(before));
  EXPECT_EQ(read_text(failure.substr(failure.find(scratch.path()))), "first\nlast\n");
  EXPECT_EQ(failure_of("exit 1"), "exit code 1");
  EXPECT_EQ(failure_of("kill -9 $$"), "signal 9");
  EXPECT_THAT(failure_of("no-such-program x"), testing::StartsWith("exit code 127; "));
  unsetenv("TMPDIR");
}

TEST(CommandOutput, ManyErrorsDoNotBlockTheCommand) {
  CommandOutput output("head -c 1000000 /dev/zero >&2; echo end; exec >&-; head -c 1000000 /dev/zero >&2");
  EXPECT_EQ(all_of(output), "end\n");
  EXPECT_EQ(output.failure(), "");
}

TEST(CommandOutput, ReadsNothingOfThisProcess) {
  CommandOutput output("cat");
  EXPECT_EQ(all_of(output), "");
}

TEST(CommandOutput, TheCommandEndsWithTheObject) {
  pid_t pid = 0;
  {
    CommandOutput output("echo $$; while :; do sleep 1000; done");
    std::string bytes(20, ' ');
    bytes.resize(output.read(bytes));
    pid = std::stoi(bytes);
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

}  // namespace
}  // namespace tutti
