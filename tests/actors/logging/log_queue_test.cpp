#include "actors/logging/log_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sstream>

#include "actors/logging/log_writer.h"
#include "io/json/json_line.h"
#include "runtime/actor/token_scheduler.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "tests/runtime/scratch.h"
#include "training/loggers/metrics_file.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kQueued = LogQueue::kMostMessages;
constexpr Nanoseconds kStep = std::chrono::milliseconds(1);

// Writes to metrics.jsonl take as long as the test says.
class StallingDisk final : public PosixDisk {
 public:
  using Stall = std::function<Nanoseconds(TimePoint now)>;

  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
    auto file = PosixDisk::open(path, truncate);
    if (!path.ends_with("/metrics.jsonl")) return file;
    return std::make_unique<File>(std::move(file), *this);
  }

  TokenScheduler* scheduler = nullptr;
  Stall stall = [](TimePoint) { return Nanoseconds(0); };

 private:
  class File final : public WritableFile {
   public:
    File(std::unique_ptr<WritableFile> below, StallingDisk& disk) : below_(std::move(below)), disk_(disk) {}
    void append(std::span<const std::byte> bytes) override {
      const Nanoseconds time = bytes.empty() ? Nanoseconds(0) : disk_.stall(disk_.scheduler->now());
      if (time > Nanoseconds(0)) disk_.scheduler->spend(time);
      below_->append(bytes);
    }
    void write_at(uint64_t offset, std::span<const std::byte> bytes) override {
      below_->write_at(offset, bytes);
    }
    void sync() override { below_->sync(); }
    void close() override { below_->close(); }

   private:
    std::unique_ptr<WritableFile> below_;
    StallingDisk& disk_;
  };
};

StallingDisk::Stall once(Nanoseconds time) {
  return
      [time, done = false](TimePoint) mutable { return std::exchange(done, true) ? Nanoseconds(0) : time; };
}

StallingDisk::Stall always(Nanoseconds time) {
  return [time](TimePoint) { return time; };
}

class SaidLog final : public Log {
 public:
  void write(LogLevel level, const std::string& line) override {
    if (level >= LogLevel::kWarning) lines.push_back(line);
  }
  void flush() override {}
  std::vector<std::string> lines;
};

// Steps of a training in simulated time that are logged to metrics.jsonl through a queue.
class LogQueueTest : public testing::Test {
 protected:
  // Each step logs the entries that `of_step` adds too. Never waits for the log, however slow that is.
  void train(int64_t steps) {
    TokenScheduler scheduler;
    const SystemClock clock;
    disk_.scheduler = &scheduler;
    const ActorId writer = scheduler.reserve("metrics.jsonl", 0, {.requests = LogQueue::kMailboxCapacity});
    const ActorId compute = scheduler.reserve("compute", 0);
    const auto warn = [this](const std::string& what) { log_.warning(what); };
    const auto file = std::make_shared<MetricsFile>(disk_, clock, scratch_.path(), 0, warn);
    scheduler.install(writer, std::make_unique<LogWriter>("metrics.jsonl", file, log_));
    LogQueue queue({.writer = writer,
                    .name = "metrics.jsonl",
                    .numbers_only = numbers_only_,
                    .report_interval = report_interval_},
                   log_);
    play(scheduler, compute, {.start = [&](Context& context) {
           queue.start(context, {});
           for (int64_t i = 1; i <= steps; ++i) {
             context.sleep(kStep);
             LogTime time{i, {}};
             time.at.total_wct = static_cast<double>(i) * seconds(kStep);
             std::vector<LogEntry> entries = {{time, StepReport{}}, {time, StepEnded()}};
             for (const auto& one : also_logged(i)) entries.push_back({time, one});
             queue.send(context, std::make_shared<const std::vector<LogEntry>>(std::move(entries)));
           }
           queue.end(context);
           EXPECT_EQ(context.now() - TimePoint{}, steps * kStep) << "training waited";
           context.send(writer, FinishLog{});
           context.stop();
         }});
    scheduler.run();
  }

  std::vector<int64_t> reported() const {
    std::vector<int64_t> found;
    std::istringstream lines(read_text(scratch_.path("metrics.jsonl")));
    for (std::string line; std::getline(lines, line);) found.push_back(json_integer(line, "step", -1));
    return found;
  }

  static std::vector<int64_t> all(int64_t first, int64_t last) {
    std::vector<int64_t> steps(static_cast<std::size_t>(last - first + 1));
    std::iota(steps.begin(), steps.end(), first);
    return steps;
  }

  void expect_lost(int64_t records) const {
    EXPECT_GT(records, 0);
    EXPECT_THAT(log_.lines,
                ElementsAre(HasSubstr("metrics.jsonl does not keep up; records are lost"),
                            HasSubstr("metrics.jsonl lost " + std::to_string(records) + " records")));
  }

  Nanoseconds report_interval_{};
  bool numbers_only_ = true;
  std::function<std::vector<decltype(LogEntry::what)>(int64_t step)> also_logged = [](int64_t) {
    return std::vector<decltype(LogEntry::what)>();
  };
  Scratch scratch_;
  StallingDisk disk_;
  SaidLog log_;
};

TEST_F(LogQueueTest, ADiskThatStallsForSecondsLosesNothing) {
  disk_.stall = once((kQueued - 10) * kStep);
  train(10'000);
  EXPECT_EQ(reported(), all(1, 10'000));
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(LogQueueTest, ADiskThatStallsForLongLosesTheStepsOfThatTime) {
  disk_.stall = once(std::chrono::seconds(60));
  train(100'000);
  const auto found = reported();
  const auto back = std::adjacent_find(found.begin(), found.end(), [](auto a, auto b) { return b != a + 1; });
  ASSERT_NE(back, found.end());
  EXPECT_NEAR(static_cast<double>(back - found.begin()), kQueued, 2) << "what came first is kept";
  EXPECT_EQ(std::vector(found.begin(), back + 1), all(1, *back));
  EXPECT_EQ(std::vector(back + 1, found.end()), all(back[1], 100'000)) << "and all from when it is back";
  EXPECT_NEAR(static_cast<double>(back[1]), 60'000, 3);
  expect_lost(100'000 - std::ssize(found));
}

// Nor does FinishLog wait for room.
TEST_F(LogQueueTest, ADiskThatIsDeadCostsNoTime) {
  disk_.stall = once(std::chrono::hours(1));
  train(10'000);
  const int64_t kept = std::ssize(reported());
  EXPECT_NEAR(static_cast<double>(kept), kQueued, 2);
  expect_lost(10'000 - kept);
}

// A write takes many lines.
TEST_F(LogQueueTest, ADiskThatIsSlowForEverLosesNothing) {
  disk_.stall = always(std::chrono::milliseconds(100));
  train(20'000);
  EXPECT_EQ(reported(), all(1, 20'000));
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(LogQueueTest, ADiskThatIsTooSlowForEverLosesCountedSteps) {
  disk_.stall = always(std::chrono::milliseconds(900));
  train(20'000);
  const auto found = reported();
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  expect_lost(20'000 - std::ssize(found));
}

constexpr int64_t kLongText = 1'000'000;

std::vector<decltype(LogEntry::what)> long_text(int64_t) {
  return {LoggedText{"", std::string(kLongText, 'x')}};
}

TEST_F(LogQueueTest, EntriesTakeLimitedMemory) {
  numbers_only_ = false;
  also_logged = long_text;
  disk_.stall = once(std::chrono::hours(1));
  train(100);
  EXPECT_NEAR(static_cast<double>(std::ssize(reported())), LogQueue::kMostBytes / kLongText, 2);
}

TEST_F(LogQueueTest, LongTextsTakeNoRoomOfALogForNumbers) {
  also_logged = long_text;
  disk_.stall = once(std::chrono::hours(1));
  train(100);
  EXPECT_EQ(reported(), all(1, 100));
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(LogQueueTest, ReportsAreSkippedWithinAnIntervalButForTheLast) {
  report_interval_ = std::chrono::microseconds(9500);
  also_logged = [](int64_t step) {
    if (step != 5) return std::vector<decltype(LogEntry::what)>();
    return std::vector<decltype(LogEntry::what)>{LoggedTable{}};
  };
  train(100);
  EXPECT_THAT(reported(), ElementsAre(1, 5, 11, 21, 31, 41, 51, 61, 71, 81, 91, 100))
      << "5 has a table to show";
  EXPECT_THAT(log_.lines, IsEmpty());
}

}  // namespace
}  // namespace tutti
