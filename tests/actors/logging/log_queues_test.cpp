#include "actors/logging/log_queues.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <sstream>

#include "actors/logging/log_writer.h"
#include "io/formats/json_line.h"
#include "runtime/actor/sim_scheduler.h"
#include "tests/runtime/actor/scripted_actor.h"
#include "tests/runtime/scratch.h"
#include "training/loggers/metrics_file.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kQueued = LogQueues::kMostWindows * LogQueues::kWindow;

// Writes to metrics.jsonl take as long as the test says.
class StallingDisk final : public PosixDisk {
 public:
  using Stall = std::function<Nanoseconds(TimePoint now)>;

  std::unique_ptr<WritableFile> open(const std::string& path, bool truncate) override {
    auto file = PosixDisk::open(path, truncate);
    if (!path.ends_with("/metrics.jsonl")) return file;
    return std::make_unique<File>(std::move(file), *this);
  }

  SimScheduler* scheduler = nullptr;
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

StallingDisk::Stall every(Nanoseconds interval, Nanoseconds time) {
  return [=, next = TimePoint{} + interval](TimePoint now) mutable {
    if (now < next) return Nanoseconds(0);
    next = now + interval;
    return time;
  };
}

class SaidLog final : public Log {
 public:
  void write(LogLevel level, const std::string& line) override {
    if (level >= LogLevel::kWarning) lines.push_back(line);
  }
  void flush() override {}
  std::vector<std::string> lines;
};

// Keeps the recorded inputs; or returns them.
class RepeatsInputs final : public Recorder {
 public:
  void record(const TraceEvent& event) override { events.insert(event.kind); }
  std::vector<TraceEvent> last(int) const override { return {}; }
  std::string input(RecordedInput, std::string measured) override {
    ++asked;
    if (!repeats) {
      inputs.push_back(measured);
    } else if (!inputs.empty()) {
      measured = inputs.front();
      inputs.pop_front();
    }
    return measured;
  }

  bool repeats = false;
  int64_t asked = 0;
  std::deque<std::string> inputs;
  std::set<TraceKind> events;
};

constexpr Nanoseconds kTimeout = std::chrono::seconds(1);

// Steps of a training in simulated time that are logged to metrics.jsonl through a queue.
class LogQueuesTest : public testing::Test {
 protected:
  // Gives how long the training took.
  Nanoseconds train(int64_t steps, Nanoseconds step) {
    SimScheduler scheduler;
    const SystemClock clock;
    disk_.scheduler = &scheduler;
    RankActors actors;
    const ActorId writer = scheduler.reserve("metrics.jsonl", 0), compute = scheduler.reserve("compute", 0);
    actors.logs.push_back({writer, "metrics.jsonl", kTimeout});
    actors.logs[0].report_interval = report_interval_;
    const auto warn = [this](const std::string& what) { log_.warning(what); };
    const auto file = std::make_shared<MetricsFile>(disk_, clock, scratch_.path(), 0, warn);
    EXPECT_EQ(file->full_queue_timeout(), kTimeout);
    scheduler.install(writer, std::make_unique<LogWriter>("metrics.jsonl", file, log_));
    LogQueues queues(actors, log_, recorder_);
    TimePoint ended;
    play(scheduler, compute, {.start = [&](Context& context) {
           queues.start(context, {});
           for (int64_t i = 1; i <= steps; ++i) {
             context.sleep(step);
             LogTime time{i, {}};
             time.at.total_wct = static_cast<double>(i) * seconds(step);
             std::vector<LogEntry> entries = {{time, StepReport{}}, {time, StepEnded()}};
             if (i == step_with_table_) entries.push_back({time, LoggedTable{}});
             queues.send(context, std::move(entries));
           }
           queues.end(context);
           context.send(writer, Stop{});
           ended = context.now();
           context.stop();
         }});
    scheduler.run();
    return ended - TimePoint{};
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
  int64_t step_with_table_ = 0;
  Scratch scratch_;
  StallingDisk disk_;
  SaidLog log_;
  RepeatsInputs recorder_;
};

TEST_F(LogQueuesTest, ADiskThatStallsForLessThanASecondLosesNothing) {
  disk_.stall = once(std::chrono::milliseconds(1100));  // some of which goes by while the queue fills
  const Nanoseconds took = train(3000, std::chrono::milliseconds(1));
  EXPECT_GE(took, std::chrono::milliseconds(3850)) << "it was not waited for: this proves nothing";
  EXPECT_LE(took, std::chrono::milliseconds(4000));
  EXPECT_EQ(reported(), all(1, 3000));
  EXPECT_THAT(log_.lines, IsEmpty());
  EXPECT_TRUE(recorder_.events.contains(TraceKind::kWaitsForLogs)) << "a rank that waits is not hung";
}

TEST_F(LogQueuesTest, ADiskThatStallsForLongCostsASecondAndLines) {
  disk_.stall = once(std::chrono::seconds(60));
  const Nanoseconds took = train(10'000, std::chrono::milliseconds(10));
  EXPECT_LE(took, std::chrono::seconds(100) + kTimeout + std::chrono::milliseconds(1));
  const auto found = reported();
  const auto back = std::adjacent_find(found.begin(), found.end(), [](auto a, auto b) { return b != a + 1; });
  ASSERT_NE(back, found.end());
  EXPECT_EQ(std::vector(found.begin(), back + 1), all(1, kQueued)) << "what came first is kept";
  EXPECT_EQ(std::vector(back + 1, found.end()), all(back[1], 10'000)) << "and all from when it is back";
  EXPECT_LE(back[1], 5900 + LogQueues::kWindow + 1);
  expect_lost(10'000 - std::ssize(found));
}

// Not even the Stop waits for room.
TEST_F(LogQueuesTest, ADiskThatIsDeadCostsASecond) {
  disk_.stall = once(std::chrono::hours(1));
  EXPECT_LE(train(10'000, std::chrono::milliseconds(10)),
            std::chrono::seconds(100) + kTimeout + std::chrono::milliseconds(1));
  EXPECT_EQ(reported(), all(1, kQueued));
  expect_lost(10'000 - kQueued);
}

TEST_F(LogQueuesTest, ADiskThatIsSlowForEverSlowsNobody) {
  disk_.stall = always(std::chrono::milliseconds(900));
  EXPECT_LE(train(20'000, std::chrono::milliseconds(1)),
            std::chrono::seconds(20) + kTimeout + std::chrono::seconds(2));
  const auto found = reported();
  EXPECT_GT(std::ssize(found), 1000);
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  expect_lost(20'000 - std::ssize(found));
}

// Short stalls that come again and again cost more than a second in all.
TEST_F(LogQueuesTest, TimeToWaitComesBackWhileTheLogKeepsUp) {
  disk_.stall = every(std::chrono::seconds(4), std::chrono::milliseconds(400));
  const Nanoseconds took = train(60'000, std::chrono::milliseconds(1));
  EXPECT_GE(took, std::chrono::seconds(60) + 2 * kTimeout) << "it waited less: this proves nothing";
  EXPECT_EQ(reported(), all(1, 60'000));
  EXPECT_THAT(log_.lines, IsEmpty());
}

// Rather than the end of a window: the disk is back when the last window, from step 897 on, is dropped.
TEST_F(LogQueuesTest, TheLastStepIsReportedIfThereIsRoomAtTheEnd) {
  disk_.stall = once(std::chrono::seconds(10));
  train(915, std::chrono::milliseconds(10));
  auto expected = all(1, kQueued);
  expected.push_back(915);
  EXPECT_EQ(reported(), expected);
  expect_lost(915 - std::ssize(expected));
}

TEST_F(LogQueuesTest, ReportsAreSkippedWithinAnIntervalButForTheLast) {
  report_interval_ = std::chrono::milliseconds(95);
  step_with_table_ = 5;
  train(100, std::chrono::milliseconds(10));
  EXPECT_THAT(reported(), ElementsAre(1, 5, 11, 21, 31, 32, 41, 51, 61, 64, 71, 81, 91, 96, 100))
      << "5 has a table to show; 32, 64 and 96 end windows";
  EXPECT_THAT(log_.lines, IsEmpty());
}

TEST_F(LogQueuesTest, SingleStepsAreNotRecorded) {
  train(10'000, std::chrono::milliseconds(1));
  EXPECT_LE(recorder_.asked, 10'000 / LogQueues::kWindow + 2);
  EXPECT_THAT(recorder_.events, IsEmpty());
}

TEST_F(LogQueuesTest, AReplayLosesTheSame) {
  disk_.stall = once(std::chrono::seconds(5));
  train(2000, std::chrono::milliseconds(5));
  const auto then = reported();
  ASSERT_LT(std::ssize(then), 2000);
  recorder_.repeats = true;
  disk_.stall = always(Nanoseconds(0));
  train(2000, std::chrono::milliseconds(5));
  EXPECT_EQ(reported(), then);
  EXPECT_THAT(recorder_.inputs, IsEmpty());
}

TEST_F(LogQueuesTest, AReplayLosesNoMore) {
  train(2000, std::chrono::milliseconds(5));
  recorder_.repeats = true;
  disk_.stall = once(std::chrono::seconds(5));
  train(2000, std::chrono::milliseconds(5));
  EXPECT_EQ(reported(), all(1, 2000));
}

}  // namespace
}  // namespace tutti
