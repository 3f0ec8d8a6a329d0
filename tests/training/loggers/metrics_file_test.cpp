#include "training/loggers/metrics_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <sstream>

#include "io/json/json_line.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"
#include "tests/runtime/small_disk.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

LogTime at(int64_t step) {
  LogTime time{.step = step};
  time.at.batch = step;
  time.at.epoch = 1;
  return time;
}

class MetricsFileTest : public testing::Test {
 protected:
  // Runs `log` with a file that begins after `step`, until its end.
  void write(Disk& disk, int64_t step, bool resumes, const std::function<void(MetricsFile&)>& log) {
    const SystemClock clock;
    MetricsFile file(disk, clock, scratch_.path(), 0,
                     [this](const std::string& what) { warnings_.push_back(what); });
    file.open({.step = step, .resumes = resumes});
    log(file);
    EXPECT_TRUE(file.finish(/*late=*/false));
  }

  static void steps(MetricsFile& file, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      file.log_step({}, at(step));
      file.step_end(at(step));
    }
    file.flush(/*sync=*/false);
  }

  // The step of each line of metrics.jsonl; of what is no whole line, -1.
  std::vector<int64_t> written() const {
    std::vector<int64_t> found;
    std::istringstream lines(read_text(path_));
    for (std::string line; std::getline(lines, line);)
      found.push_back(lines.eof() ? -1 : json_integer(line, "step", -1));
    return found;
  }

  static std::vector<int64_t> counting(int64_t first, int64_t last) {
    std::vector<int64_t> all(static_cast<std::size_t>(last - first + 1));
    std::iota(all.begin(), all.end(), first);
    return all;
  }

  Scratch scratch_;
  PosixDisk disk_;
  std::vector<std::string> warnings_;
  std::string path_ = scratch_.path("metrics.jsonl");
};

// As bytes: tools of users read them.
TEST_F(MetricsFileTest, AStepItsEvaluationAndWhatWasLoggedAreALineEach) {
  write(disk_, 1, /*resumes=*/true, [](MetricsFile& file) {
    file.log_metrics({{"norm", 1}, {"other", 2}}, at(2));
    StepReport report{.loss = 0.1,
                      .lr = 0.1,
                      .step_ms = 8,
                      .data_wait_ms = 2,
                      .data_read_ms = 3,
                      .data_disk_ms = 1,
                      .samples_per_s = 4000,
                      .grad_accum = 2};
    report.metrics = {{"metrics/train/a", 0.75}};
    file.log_step({}, at(1));
    file.log_step(report, at(2));
    file.log_trainer_metrics({{"time/batch", 2}}, at(2));
    file.log_metrics({{"third", 3}, {"norm", 4}}, at(2));
    file.evaluation_due(at(2));
    file.log_evaluation({{"metrics/eval/a", 0.5}}, at(2));
    file.log_traces({{"algorithm_traces/EMA/eval_end", 1}}, at(2));
    file.step_end(at(2));
    file.step_end(at(2));
  });
  const std::string text = read_text(path_);
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "{\"step\": 2, \"epoch\": 1, \"loss\": 0.100000001, \"lr\": 0.10000000000000001, \"step_ms\": 8, "
            "\"data_wait_ms\": 2, \"data_read_ms\": 3, \"data_disk_ms\": 1, \"samples_per_s\": 4000, "
            "\"grad_accum\": 2, \"memory_peak_mb\": 0, "
            "\"metrics/train/a\": 0.75}\n"
            "{\"step\": 2, \"epoch\": 1, \"norm\": 4, \"other\": 2, \"third\": 3}\n"
            "{\"step\": 2, \"epoch\": 1, \"metrics/eval/a\": 0.5}\n"
            "{\"step\": 2, \"epoch\": 1, \"algorithm_traces/EMA/eval_end\": 1}\n");
}

TEST_F(MetricsFileTest, LinesWaitForRoomOnTheDisk) {
  SmallDisk small(1000);
  write(small, 0, /*resumes=*/false, [&](MetricsFile& file) {
    steps(file, 1, 300);
    EXPECT_LT(written().size(), 20u);
    small.room = 1 << 20;
    steps(file, 301, 310);
  });
  EXPECT_EQ(written(), counting(1, 310));
  EXPECT_EQ(warnings_.size(), 1u) << "of the disk, and to whom warnings go";
}

TEST_F(MetricsFileTest, LinesThatNeverFoundRoomAreCountedAtTheEnd) {
  SmallDisk small(1000);
  write(small, 0, /*resumes=*/false, [&](MetricsFile& file) { steps(file, 1, 300); });
  const auto found = written();
  const int64_t whole = std::count_if(found.begin(), found.end(), [](int64_t step) { return step > 0; });
  EXPECT_GT(whole, 0);
  ASSERT_EQ(warnings_.size(), 2u);
  EXPECT_EQ(warnings_[1],
            path_ + " lacks " + std::to_string(300 - whole) + " lines, for which there was no room");
}

TEST_F(MetricsFileTest, LinesAreWholeWhereverRoomRanOut) {
  constexpr int64_t kMany = 20000;  // more bytes than are kept
  SmallDisk small(1000);
  write(small, 0, /*resumes=*/false, [&](MetricsFile& file) {
    for (int64_t step = 1; step <= kMany; step += 100) {
      small.room += 777;
      steps(file, step, step + 99);
    }
    small.room = 64 << 20;
    file.flush(/*sync=*/true);
    steps(file, kMany + 1, kMany + 1);
  });
  const auto found = written();
  EXPECT_EQ(found.front(), 1);
  EXPECT_EQ(found.back(), kMany + 1);
  EXPECT_LT(found.size(), static_cast<std::size_t>(kMany)) << "none was dropped: this proves nothing";
  EXPECT_TRUE(std::is_sorted(found.begin(), found.end()));
  const std::string lost =
      " lacks " + std::to_string(kMany + 1 - static_cast<int64_t>(found.size())) + " lines";
  const auto tells = [&](const std::string& warning) { return warning.find(lost) != std::string::npos; };
  EXPECT_EQ(std::count_if(warnings_.begin(), warnings_.end(), tells), 1) << lost;
}

TEST_F(MetricsFileTest, EarlierLinesThatCannotBeReadAreKeptBesideTheNewOnes) {
  struct Unreadable final : PosixDisk {
    std::vector<std::byte> read(const std::string& path) const override {
      throw OperatingError(path + ": Input/output error");
    }
  } unreadable;
  const std::string earlier = "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n";
  write_text(path_, earlier);
  write(unreadable, 3, /*resumes=*/true, [&](MetricsFile& file) { steps(file, 4, 6); });
  EXPECT_EQ(written(), counting(4, 6));
  EXPECT_EQ(read_text(scratch_.path("metrics.earlier.jsonl")), earlier);
  EXPECT_THAT(warnings_, ElementsAre(AllOf(HasSubstr("begins anew"), HasSubstr("Input/output error"))));
}

TEST_F(MetricsFileTest, AFileThatCannotBeBegunIsBegunOnceThereIsRoom) {
  const std::string earlier = "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 3}\n";
  write_text(path_, earlier);
  SmallDisk small(10);
  write(small, 2, /*resumes=*/true, [&](MetricsFile& file) {
    steps(file, 3, 5);
    file.flush(/*sync=*/true);
    EXPECT_EQ(read_text(path_), earlier);
    small.room = 1 << 20;
    steps(file, 6, 6);
  });
  EXPECT_EQ(written(), counting(1, 6));
}

TEST_F(MetricsFileTest, ResumedRunCutsAtItsStep) {
  const std::string until =
      "{\"step\": 1}\n{\"step\": 2}\n{\"step\": 2, \"epoch\": 1, \"metrics/eval/a\": 0.5}\n";
  write_text(path_, until + "{\"step\": 3}\n{\"step\": 3, \"metrics/eval/a\": 0.6}\n{\"step\": 4, \"lo");
  write(disk_, 2, /*resumes=*/true, [](MetricsFile& file) {
    file.log_evaluation({{"metrics/eval/a", 0.5}}, at(2));
  });
  EXPECT_EQ(read_text(path_), until);
}

TEST_F(MetricsFileTest, LinesThatWereCutOffAreMissedInAResumedRun) {
  write_text(path_, "{\"step\": 1}\n{\"step\": 3}\n");
  write(disk_, 5, /*resumes=*/true, [](MetricsFile&) {});
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("the lines of steps 4 to 5 are missing")));
}

// The second evaluator was due at the end alone: all are found once more, together.
TEST_F(MetricsFileTest, OfAnEvaluationOnlyWhatIsNewIsWritten) {
  const std::string once = "{\"step\": 2, \"epoch\": 1, \"metrics/a/x\": 0.5, \"metrics/a/y\": \"nan\"}\n";
  write_text(path_, once);
  write(disk_, 2, /*resumes=*/true, [](MetricsFile& file) {
    const double nan = -std::nan("");
    file.log_evaluation({{"metrics/a/x", 0.5}, {"metrics/a/y", nan}}, at(2));
    file.log_evaluation({{"metrics/a/x", 0.5}, {"metrics/b/x", 0.5}, {"metrics/a/y", nan}}, at(2));
  });
  EXPECT_EQ(read_text(path_), once + "{\"step\": 2, \"epoch\": 1, \"metrics/b/x\": 0.5}\n");
}

TEST_F(MetricsFileTest, ResumingFromAnotherRunKeepsTheLinesOfEarlierRuns) {
  write_text(path_, "{\"step\": 1}\n{\"step\": 2}\n");
  write(disk_, 2, /*resumes=*/false, [](MetricsFile&) {});
  EXPECT_EQ(read_text(path_), "");
  EXPECT_EQ(read_text(scratch_.path("metrics.earlier.jsonl")), "{\"step\": 1}\n{\"step\": 2}\n");
}

TEST_F(MetricsFileTest, StartingAfreshKeepsTheLinesOfEarlierRuns) {
  for (int64_t step = 1; step <= 3; ++step)
    write(disk_, 0, /*resumes=*/false, [step](MetricsFile& file) { steps(file, step, step); });
  EXPECT_EQ(disk_.list(scratch_.path()),
            (std::vector<std::string>{"metrics.earlier-2.jsonl", "metrics.earlier.jsonl", "metrics.jsonl"}));
  EXPECT_EQ(json_integer(read_text(scratch_.path("metrics.earlier.jsonl")), "step", -1), 1);
  EXPECT_EQ(written(), counting(3, 3));
}

}  // namespace
}  // namespace tutti
