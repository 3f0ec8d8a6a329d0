#include "actors/logging/reporter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "io/formats/json_line.h"
#include "runtime/error.h"
#include "sim/environment/sim_scheduler.h"
#include "tests/runtime/scratch.h"
#include "tests/runtime/small_disk.h"
#include "tests/runtime/stalled_pipe.h"

namespace tutti {
namespace {

class Teller final : public Actor {
 public:
  explicit Teller(std::function<void(Context&)> tell) : tell_(std::move(tell)) {}
  void start(Context& context) override {
    tell_(context);
    context.stop();
  }
  void receive(Context&, Envelope&) override {}

 private:
  std::function<void(Context&)> tell_;
};

class ReporterTest : public testing::Test {
 protected:
  // What `tell` sends to a Reporter, until its end.
  void report(Disk& disk, const std::function<void(Context&, ActorId reporter)>& tell,
              std::FILE* out = nullptr) {
    SimScheduler scheduler;
    SystemClock clock;
    const ActorId reporter = scheduler.reserve("reporter", 0);
    const ActorId teller = scheduler.reserve("teller", 0);
    Reporter::Options options{.run_dir = scratch_.path(), .checkpoints = "checkpoints", .out = out};
    options.warn = [this](const std::string& what) { warnings_.push_back(what); };
    scheduler.install(reporter, std::make_unique<Reporter>(options, disk, clock));
    scheduler.install(teller, std::make_unique<Teller>([&](Context& context) {
                        tell(context, reporter);
                        context.send(reporter, Stop{});
                      }));
    scheduler.run();
  }

  static void steps(Context& context, ActorId reporter, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) context.send(reporter, StepDone{.step = step});
  }

  // The step of each line of metrics.jsonl; of what is no whole line, -1.
  std::vector<int64_t> reported() const {
    std::vector<int64_t> found;
    std::istringstream lines(read_text(path_));
    for (std::string line; std::getline(lines, line);)
      found.push_back(lines.eof() ? -1 : json_integer(line, "step", -1));
    return found;
  }

  static std::vector<int64_t> counting(int64_t first, int64_t last) {
    std::vector<int64_t> all;
    for (int64_t i = first; i <= last; ++i) all.push_back(i);
    return all;
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::vector<std::string> warnings_;
  std::string path_ = scratch_.path("metrics.jsonl");
};

TEST_F(ReporterTest, LinesWaitForRoomOnTheDisk) {
  SmallDisk small(1000);
  report(small, [&](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{});
    steps(context, reporter, 1, 300);
    context.ask<MetricsWritten>(reporter, WriteMetrics{});
    EXPECT_LT(reported().size(), 20u);
    small.room = 1 << 20;
    steps(context, reporter, 301, 310);
  });
  EXPECT_EQ(reported(), counting(1, 310));
  EXPECT_EQ(warnings_.size(), 1u) << "of the disk, and to whom warnings go";
}

TEST_F(ReporterTest, LinesThatNeverFoundRoomAreCountedAtTheEnd) {
  SmallDisk small(1000);
  report(small, [&](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{});
    steps(context, reporter, 1, 300);
  });
  const auto found = reported();
  const int64_t whole = std::count_if(found.begin(), found.end(), [](int64_t step) { return step > 0; });
  EXPECT_GT(whole, 0);
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_EQ(warnings_[1],
            path_ + " lacks " + std::to_string(300 - whole) + " lines, for which there was no room");
}

TEST_F(ReporterTest, LinesAreWholeWhereverRoomRanOut) {
  constexpr int64_t kMany = 20000;  // more bytes than are kept
  SmallDisk small(1000);
  report(small, [&](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{});
    for (int64_t step = 1; step <= kMany; step += 100) {
      small.room += 777;
      steps(context, reporter, step, step + 99);
      context.ask<MetricsWritten>(reporter, WriteMetrics{});
    }
    small.room = 64 << 20;
    context.ask<MetricsWritten>(reporter, WriteMetrics{});
    steps(context, reporter, kMany + 1, kMany + 1);
  });
  const auto found = reported();
  EXPECT_EQ(found.front(), 1);
  EXPECT_EQ(found.back(), kMany + 1);
  EXPECT_LT(found.size(), static_cast<std::size_t>(kMany)) << "none was dropped: this proves nothing";
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  const std::string lost =
      " lacks " + std::to_string(kMany + 1 - static_cast<int64_t>(found.size())) + " lines";
  const auto tells = [&](const std::string& warning) { return warning.find(lost) != std::string::npos; };
  EXPECT_EQ(std::count_if(warnings_.begin(), warnings_.end(), tells), 1) << lost;
}

TEST_F(ReporterTest, EarlierLinesThatCannotBeReadAreKeptBesideTheNewOnes) {
  struct Unreadable final : PosixDisk {
    std::vector<std::byte> read(const std::string& path) const override {
      throw OperatingError(path + ": Input/output error");
    }
  } unreadable;
  const std::string earlier = "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n";
  write_text(path_, earlier);
  report(unreadable, [&](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{3, "", /*own=*/true});
    steps(context, reporter, 4, 6);
  });
  EXPECT_EQ(reported(), counting(4, 6));
  EXPECT_EQ(read_text(scratch_.path("metrics.earlier.jsonl")), earlier);
  EXPECT_THAT(warnings_, testing::ElementsAre(testing::AllOf(testing::HasSubstr("begins anew"),
                                                             testing::HasSubstr("Input/output error"))));
}

TEST_F(ReporterTest, DamagedLinesAreCountedInAWarning) {
  write_text(path_, "{\"step\": 1}\n{\"step\" 2}\nstep 3\n{\"step\": 4}\n{\"step\": 5");
  report(disk_, [](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{4, "", /*own=*/true});
  });
  EXPECT_EQ(read_text(path_), "{\"step\": 1}\n{\"step\": 4}\n");
  EXPECT_THAT(warnings_, testing::ElementsAre(path_ + ": 2 lines cannot be read, and are dropped"));
}

TEST_F(ReporterTest, MetricsAreShownWithTheirLabelsWhereThereAreSeveral) {
  const auto table_of = [&](std::vector<std::pair<std::string, double>> metrics) {
    std::FILE* out = std::tmpfile();
    report(
        disk_,
        [&](Context& context, ActorId reporter) {
          context.send(reporter, ReportFrom{});
          context.send(reporter, EvalDone{2, 1, metrics});
        },
        out);
    std::string text(4096, '\0');
    std::rewind(out);
    text.resize(std::fread(text.data(), 1, text.size(), out));
    std::fclose(out);
    return text;
  };
  EXPECT_THAT(table_of({{"metrics/eval/a", 0.5}, {"metrics/eval/b", 1}}), testing::HasSubstr("  a   "));
  const std::string both = table_of({{"metrics/eval/a", 0.5}, {"metrics/far/a", 0.25}});
  EXPECT_THAT(both, testing::HasSubstr("  eval/a   "));
  EXPECT_THAT(both, testing::HasSubstr("  far/a    "));
}

TEST_F(ReporterTest, AFileThatCannotBeBegunIsBegunOnceThereIsRoom) {
  const std::string earlier = "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n";
  write_text(path_, earlier);
  SmallDisk small(10);
  report(small, [&](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{2, "checkpoints/ep1-ba2", /*own=*/true});
    steps(context, reporter, 3, 5);
    context.ask<MetricsWritten>(reporter, WriteMetrics{});
    EXPECT_EQ(read_text(path_), earlier);
    small.room = 1 << 20;
    steps(context, reporter, 6, 6);
  });
  EXPECT_EQ(reported(), counting(1, 6));
}

TEST_F(ReporterTest, ResumedRunCutsAtItsStep) {
  const std::string until =
      "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 2, \"epoch\": 1, \"metrics/eval/a\": 0.5}\n";
  write_text(path_, until + "{\"step\": 3}\n{\"step\": 3, \"metrics/eval/a\": 0.6}\n{\"step\": 4, \"lo");
  report(disk_, [](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{2, "checkpoints/ep1-ba2", /*own=*/true});
    context.send(reporter, EvalDone{2, 1, {{"metrics/eval/a", 0.5}}});
  });
  EXPECT_EQ(read_text(path_), until);
}

// The second evaluator was due at the end alone: all are found once more, in one message.
TEST_F(ReporterTest, OfAnEvaluationOnlyWhatIsNewIsReported) {
  const std::string once = "{\"step\": 2, \"epoch\": 1, \"metrics/a/x\": 0.5, \"metrics/a/y\": \"nan\"}\n";
  write_text(path_, once);
  report(disk_, [](Context& context, ActorId reporter) {
    const double nan = -std::nan("");
    context.send(reporter, ReportFrom{2, "checkpoints/ep1-ba2", /*own=*/true});
    context.send(reporter, EvalDone{2, 1, {{"metrics/a/x", 0.5}, {"metrics/a/y", nan}}});
    context.send(reporter,
                 EvalDone{2, 1, {{"metrics/a/x", 0.5}, {"metrics/b/x", 0.5}, {"metrics/a/y", nan}}});
  });
  EXPECT_EQ(read_text(path_), once + "{\"step\": 2, \"epoch\": 1, \"metrics/b/x\": 0.5}\n");
}

TEST_F(ReporterTest, GoingOnFromAnotherRunKeepsTheLinesOfEarlierRuns) {
  write_text(path_, "{\"step\": 1}\n{\"step\": 2}\n");
  report(disk_, [](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{2, "checkpoints/earlier/ep1-ba2"});
  });
  EXPECT_EQ(read_text(path_), "");
  EXPECT_EQ(read_text(scratch_.path("metrics.earlier.jsonl")), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST_F(ReporterTest, StartingAfreshKeepsTheLinesOfEarlierRuns) {
  for (int64_t step = 1; step <= 3; ++step) {
    report(disk_, [step](Context& context, ActorId reporter) {
      context.send(reporter, ReportFrom{});
      steps(context, reporter, step, step);
    });
  }
  EXPECT_EQ(disk_.list(scratch_.path()),
            (std::vector<std::string>{"metrics.earlier-2.jsonl", "metrics.earlier.jsonl", "metrics.jsonl"}));
  EXPECT_EQ(json_integer(read_text(scratch_.path("metrics.earlier.jsonl")), "step", -1), 1);
  EXPECT_EQ(reported(), counting(3, 3));
}

TEST_F(ReporterTest, AReaderThatStallsHoldsNobodyUp) {
  StalledPipe pipe;
  const auto tell = [](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{});
    for (int64_t step = 1; step <= 100; ++step) {
      steps(context, reporter, step, step);
      context.send(reporter, EvalDone{step, 1, {{"metrics/eval/a", 0.5}}});  // shown each time
    }
  };
  report(disk_, tell, pipe.out);
  EXPECT_EQ(reported().size(), 200u);
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0].find("progress: "), 0u) << warnings_[0];
  EXPECT_NE(warnings_[0].find(" lines were not shown"), std::string::npos) << warnings_[0];
}

TEST_F(ReporterTest, LastStepIsShownOnce) {
  std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
  const auto tell = [](Context& context, ActorId reporter) {
    context.send(reporter, ReportFrom{});
    steps(context, reporter, 1, 3);
    context.send(reporter, EvalDone{3, 1, {{"metrics/eval/a", 0.5}}});
  };
  report(disk_, tell, out);
  std::fclose(out);
  const std::string text = read_text(scratch_.path("out"));
  EXPECT_NE(text.find("step 3 "), std::string::npos) << text;
  EXPECT_EQ(text.find("step 3 "), text.rfind("step 3 ")) << text;
}

}  // namespace
}  // namespace tutti
