// Loggers that write files, with a full disk and with values that are no numbers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "io/formats/event_file.h"
#include "runtime/clock.h"
#include "tests/runtime/scratch.h"
#include "tests/runtime/small_disk.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/tensorboard_logger.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class FileLoggersTest : public testing::Test {
 protected:
  void log(LoggerDestination& logger, int64_t first, int64_t last, double value = 0.5) {
    for (int64_t step = first; step <= last; ++step) {
      LogTime time;
      time.step = step;
      time.at.batch = step - 1;
      logger.log_metrics({{"loss", value}}, time);
      logger.step_end(time);
      logger.flush(false);
    }
  }

  // Whole ones.
  int64_t lines_in(const std::string& name) const {
    const std::string text = read_text(scratch_.path(name));
    return std::count(text.begin(), text.end(), '\n');
  }

  Scratch scratch_;
  SmallDisk disk_{1000};
  LogStart start_{.run_name = "trial", .run_dir = scratch_.path(), .max_duration = Time::parse("3ep")};
  std::vector<std::string> warnings_;
  Warn warn_ = [this](const std::string& what) { warnings_.push_back(what); };
};

TEST_F(FileLoggersTest, LinesThatNeverFoundRoomAreCountedAtTheEnd) {
  const auto naming_recipe = [this](LineLogger<LoggerDestination>&& logger, const std::string& name,
                                    int64_t lines) {
    warnings_.clear();
    disk_.room = 1000;
    logger.open(start_);
    log(logger, 1, 200);
    logger.finish(false);
    ASSERT_GT(lines_in(name), 1);
    EXPECT_THAT(warnings_, ElementsAre("No space left on device", scratch_.path(name) + " lacks " +
                                                                      std::to_string(lines - lines_in(name)) +
                                                                      " lines, for which there was no room"));
  };
  naming_recipe(CsvLogger(disk_, {"m.csv"}, warn_), "m.csv", 1 + 200);
  naming_recipe(FileLogger(disk_, {"m.txt"}, true, warn_), "m.txt", 200);
}

TEST_F(FileLoggersTest, LinesThatWereDroppedAreCountedOnce) {
  constexpr int64_t kMany = 60000;  // more bytes than are kept
  CsvLogger logger(disk_, {"m.csv"}, warn_);
  logger.open(start_);
  log(logger, 1, kMany);
  disk_.room = 16 << 20;
  logger.finish(false);
  const std::string lost = std::to_string(1 + kMany - lines_in("m.csv"));
  EXPECT_THAT(warnings_, ElementsAre("No space left on device", HasSubstr(" lacks " + lost + " lines")));
  logger.finish(false);
  EXPECT_EQ(warnings_.size(), 2u);
}

TEST_F(FileLoggersTest, NoLineIsMissingIfThereWasRoomInTheEnd) {
  JsonlLogger logger(disk_, {"m.jsonl"}, warn_);
  logger.open(start_);
  log(logger, 1, 200);
  disk_.room = 1 << 20;
  logger.finish(false);
  EXPECT_EQ(lines_in("m.jsonl"), 200);
  EXPECT_THAT(warnings_, ElementsAre("No space left on device"));
}

// Makes the clock stand still.
struct StillClock final : Clock {
  TimePoint now() const override { return {}; }
  int64_t unix_ms() const override { return 1'700'000'000'500; }
};

// A step's metrics are one; before them all stands the file's version.
TEST_F(FileLoggersTest, RecordsThatNeverFoundRoomAreCountedAtTheEnd) {
  const StillClock clock;
  for (const int64_t steps : {200, 60000}) {
    warnings_.clear();
    disk_.room = 1000;
    const std::string folder = "tb" + std::to_string(steps);
    TensorboardLogger logger(disk_, clock, {.log_dir = folder}, warn_);
    logger.open(start_);
    log(logger, 1, steps);
    logger.finish(false);
    const std::string path = scratch_.path(folder + "/" + disk_.list(scratch_.path(folder)).at(0));
    int64_t there = 0;
    for (int64_t batch = 0; batch < 100; ++batch)
      there += static_cast<int64_t>(records_of_step(disk_, {path}, batch).size());
    ASSERT_GT(there, 1);
    EXPECT_THAT(warnings_,
                ElementsAre("No space left on device", path + " lacks " + std::to_string(1 + steps - there) +
                                                           " records, for which there was no room"));
  }
}

TEST_F(FileLoggersTest, RecordsAreNotLackedWhereThereWasRoom) {
  const StillClock clock;
  TensorboardLogger logger(disk_, clock, {.log_dir = "tb"}, warn_);
  logger.open(start_);
  log(logger, 1, 3);
  logger.finish(false);
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(FileLoggersTest, NanHasNoSign) {
  disk_.room = 1 << 20;
  CsvLogger logger(disk_, {"m.csv"}, warn_);
  logger.open(start_);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  log(logger, 1, 1, std::copysign(nan, -1.0));
  log(logger, 2, 2, nan);
  log(logger, 3, 3, -std::numeric_limits<double>::infinity());
  logger.finish(false);
  EXPECT_EQ(read_text(scratch_.path("m.csv")),
            "step,batch,epoch,name,value\n1,0,1,loss,nan\n2,1,1,loss,nan\n3,2,1,loss,-inf\n");
}

// Entries at the beginning of a step have the count of the previous step.
TEST_F(FileLoggersTest, AStepThatIsDoneAgainRepeatsNoPoint) {
  PosixDisk disk;
  const SystemClock clock;
  const auto run = [&](int64_t from) {
    TensorboardLogger logger(disk, clock, {.log_dir = "tb"});
    LogStart start;
    start.run_dir = scratch_.path("");
    start.step = start.at.batch = from;
    start.resumes = from > 0;
    logger.open(start);
    log(logger, 3, 4);
    logger.finish(false);
  };
  run(0);
  run(2);
  const auto names = disk.list(scratch_.path("tb"));
  ASSERT_THAT(names, testing::SizeIs(2));
  const auto second = [&](int64_t step) {
    return records_of_step(disk, {scratch_.path("tb/" + names[1])}, step).size();
  };
  EXPECT_EQ(second(2), 0u) << "the first attempt's stay";
  EXPECT_EQ(second(3), 1u) << "the first attempt's are dropped";
}

}  // namespace
}  // namespace tutti
