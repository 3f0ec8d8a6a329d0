#include "training/loggers/command_logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <sstream>
#include <thread>

#include "runtime/disk.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CommandLoggerTest : public testing::Test {
 protected:
  LogStart start() const {
    return {.run_name = "trial", .run_dir = scratch_.path(), .max_duration = Time::parse("3ep")};
  }

  // Steps of a run, two lines each.
  static void steps(LoggerDestination& logger, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      LogTime time{.step = step};
      time.at.batch = step - 1;
      logger.log_metrics({{"loss", static_cast<double>(step)}}, time);
      time.at.batch = step;
      logger.step_end(time);
      logger.flush(false);
    }
  }

  CommandLogger logger(const std::string& command) {
    return {command, true, start_child, [this](const std::string& what) { warnings_.push_back(what); }};
  }
  // As a LogWriter does at the end.
  static void finish(LoggerDestination& logger, std::chrono::milliseconds within) {
    const auto until = std::chrono::steady_clock::now() + within;
    while (!logger.finish(std::chrono::steady_clock::now() > until))
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  // Until the logger is as it should be.
  static void wait(const std::function<bool()>& holds) {
    for (int i = 0; i < 1000 && !holds(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_TRUE(holds());
  }

  // Lines, as the last warning says.
  int64_t lost() const {
    const std::string& said = warnings_.back();
    return std::stoll(said.substr(said.find(" lost ") + 6));
  }

  Scratch scratch_;
  std::vector<std::string> warnings_;
};

constexpr std::chrono::milliseconds kLong = std::chrono::seconds(20);

// A program may quote the command, and so secrets, when it fails.
TEST_F(CommandLoggerTest, TheProgramsOutputIsTheUsersAlone) {
  auto one = logger("echo said >&2; cat > /dev/null");
  one.open(start());
  finish(one, kLong);
  namespace fs = std::filesystem;
  const std::string log = scratch_.path("log/command-rank-0.log");
  EXPECT_EQ(read_text(log), "said\n");
  EXPECT_EQ(fs::status(log).permissions(), fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(CommandLoggerTest, TheProgramReadsALineForEachRecord) {
  auto one = logger("cat > " + scratch_.path("read"));
  one.open(start());
  steps(one, 1, 1);
  finish(one, kLong);
  const std::string where = "\"step\": 1, \"batch\": ";
  std::istringstream text(read_text(scratch_.path("read")));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  EXPECT_THAT(lines,
              ElementsAre(HasSubstr("{\"type\": \"start\", \"step\": 0, \"batch\": 0, \"epoch\": 1, "
                                    "\"run_name\": \"trial\", "),
                          "{\"type\": \"metrics\", " + where + "0, \"epoch\": 1, \"metrics\": {\"loss\": 1}}",
                          "{\"type\": \"step_end\", " + where + "1, \"epoch\": 1}", "{\"type\": \"end\"}"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(CommandLoggerTest, AProgramThatDoesNotReadLosesLinesAndHoldsNobodyUp) {
  auto one = logger("sleep 100");
  one.open(start());
  const auto began = std::chrono::steady_clock::now();
  constexpr int64_t kSteps = 30000;  // more bytes than a pipe and the queue hold
  steps(one, 1, kSteps);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("does not keep up")));
  finish(one, std::chrono::milliseconds(100));
  EXPECT_LT(std::chrono::steady_clock::now() - began, kLong);
  ASSERT_THAT(warnings_, ElementsAre(HasSubstr("keep up"), HasSubstr("is killed"), HasSubstr(" lost ")));
  constexpr int64_t kPipe = 1 << 16, kShortest = 50;  // bytes; of a line
  const int64_t all = 1 + 2 * kSteps;
  EXPECT_THAT(lost(), testing::AllOf(testing::Le(all), testing::Ge(all - kPipe / kShortest)));
}

// Takes so many bytes, and then no more, or is gone.
class Sated final : public ChildProcess {
 public:
  Sated(std::size_t room, bool goes, std::string& taken) : room_(room), goes_(goes), taken_(taken) {}
  int64_t write(std::span<const char> bytes) override {
    const auto some = bytes.first(std::min(bytes.size(), room_ - taken_.size()));
    taken_.append(some.begin(), some.end());
    return some.empty() && goes_ ? -1 : std::ssize(some);
  }
  void end_input() override {}
  bool ended() override { return false; }
  bool succeeded() override { return false; }
  std::string outcome() override { return ""; }
  void kill() override {}

 private:
  std::size_t room_;
  bool goes_;
  std::string& taken_;
};

TEST_F(CommandLoggerTest, EveryLineThatAProgramDidNotTakeIsCounted) {
  constexpr int64_t kSteps = 100;
  for (const bool goes : {false, true}) {
    std::string taken;
    warnings_.clear();
    CommandLogger one(
        "sated", true,
        [&](const std::string&, const std::string&) { return std::make_unique<Sated>(3000, goes, taken); },
        [this](const std::string& what) { warnings_.push_back(what); });
    one.open(start());
    steps(one, 1, kSteps);
    EXPECT_TRUE(one.finish(/*late=*/true));
    ASSERT_THAT(warnings_, testing::Contains(HasSubstr(" lost "))) << goes;
    const int64_t whole = std::count(taken.begin(), taken.end(), '\n');
    EXPECT_GT(whole, 10);
    EXPECT_EQ(lost(), 1 + 2 * kSteps - whole) << goes;
  }
}

TEST_F(CommandLoggerTest, AProgramThatEndsIsReportedOnce) {
  auto one = logger("echo 'no such project' >&2; exit 3");
  one.open(start());
  int64_t step = 0;
  wait([&] {
    steps(one, step + 1, step + 1);
    return ++step > 1 && !warnings_.empty();
  });
  steps(one, step + 1, step + 50);
  finish(one, kLong);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("reads no more"), HasSubstr("is gone"), HasSubstr(" lost ")));
  EXPECT_GE(lost(), 100) << "of the last fifty steps";
  EXPECT_EQ(read_text(scratch_.path("log/command-rank-0.log")), "no such project\n");
}

TEST_F(CommandLoggerTest, AProgramThatEndsBadlyIsReported) {
  auto one = logger("cat > /dev/null; exit 5");
  one.open(start());
  finish(one, kLong);
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("ended with exit code 5")));
}

TEST_F(CommandLoggerTest, ASimulationStartsNoProgram) {
  CommandLogger one("touch " + scratch_.path("started"), true, nullptr, nullptr);
  one.open(start());
  steps(one, 1, 3);
  EXPECT_TRUE(one.finish(false));
  EXPECT_FALSE(PosixDisk().exists(scratch_.path("started")));
}

}  // namespace
}  // namespace tutti
