#include "training/loggers/trackers/wandb_logger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/io/formats/wandb_rows.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class WandbLoggerTest : public testing::Test {
 protected:
  struct FixedClock final : Clock {
    TimePoint now() const override { return steady; }
    int64_t unix_ms() const override { return ms; }
    TimePoint steady;
    int64_t ms = 1'700'000'000'000;
  };

  LogStart start(int64_t step = 0) const {
    LogStart start{.run_name = "trial", .run_dir = scratch_.path()};
    start.step = start.at.batch = step;
    start.resumes = step > 0;
    return start;
  }
  static LogTime at(int64_t step, int64_t batch) {
    LogTime time{.step = step};
    time.at.batch = batch;
    return time;
  }
  WandbLogger logger(WandbLoggerOptions options = {}) {
    return {disk_, clock_, std::move(options),
            [this](const std::string& what) { warnings_.push_back(what); }};
  }
  // Steps with a loss each, and with an evaluation behind each.
  static void steps(LoggerDestination& logger, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      logger.log_metrics({{"loss", static_cast<double>(step)}}, at(step, step - 1));
      logger.log_metrics({{"eval", static_cast<double>(10 * step)}}, at(step, step));
      logger.step_end(at(step, step));
      logger.flush(false);
    }
  }
  std::string folder() const {
    const auto names = disk_.list(scratch_.path("wandb"));
    return scratch_.path("wandb/") + names.back();
  }
  std::string path() const {
    for (const auto& name : disk_.list(folder()))
      if (name.ends_with(".wandb")) return folder() + "/" + name;
    return "";
  }
  // Rows without their times.
  std::vector<std::pair<int64_t, WandbValues>> rows() const {
    std::vector<std::pair<int64_t, WandbValues>> rows;
    for (auto& [step, values] : rows_of_file(path(), 40)) {
      values.erase("_timestamp");
      values.erase("_runtime");
      rows.emplace_back(step, values);
    }
    return rows;
  }

  Scratch scratch_;
  PosixDisk disk_;
  FixedClock clock_;
  std::vector<std::string> warnings_;
};

TEST_F(WandbLoggerTest, ARowHasAllValuesOfABatch) {
  auto one = logger();
  one.open(start());
  steps(one, 1, 2);
  one.finish(false);
  EXPECT_THAT(rows(), ElementsAre(Pair(0, WandbValues{{"_step", "0"}, {"loss", "1"}}),
                                  Pair(1, WandbValues{{"_step", "1"}, {"eval", "10"}, {"loss", "2"}}),
                                  Pair(2, WandbValues{{"_step", "2"}, {"eval", "20"}})));
}

TEST_F(WandbLoggerTest, TheFolderIsNamedAsThePackageNamesIt) {
  auto one = logger();
  one.open(start());
  const std::string name = disk_.list(scratch_.path("wandb")).front();
  EXPECT_THAT(name, testing::MatchesRegex("offline-run-20231114_221320-[0-9a-z]{8}"));
  EXPECT_EQ(path(), folder() + "/run-" + name.substr(name.rfind('-') + 1) + ".wandb");
}

TEST_F(WandbLoggerTest, AKilledRunContinuesItsFileWithTheSameRows) {
  auto whole = logger();
  whole.open(start());
  steps(whole, 1, 6);
  whole.finish(false);
  const auto expected = rows();
  clock_.ms += 60'000;  // the second run's folder is the newest
  for (const bool is_row_written : {false, true}) {
    clock_.ms += 60'000;
    auto killed = logger();
    killed.open(start());
    steps(killed, 1, 3);
    killed.flush(/*sync=*/true);  // of the checkpoint: the evaluation of step 3 is in an open row
    if (is_row_written) steps(killed, 4, 6);
    const std::string before = path();
    clock_.ms += 60'000;
    auto resumed = logger();
    resumed.open(start(3));
    steps(resumed, 4, 6);
    resumed.finish(false);
    EXPECT_EQ(path(), before);
    EXPECT_EQ(rows(), expected);
  }
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(WandbLoggerTest, AClockThatIsSetBackChangesStampsAlone) {
  auto first = logger();
  first.open(start());
  steps(first, 1, 1);
  clock_.ms -= 3'600'000;
  clock_.steady += std::chrono::seconds(5);
  steps(first, 2, 2);
  first.finish(false);
  const auto written = rows_of_file(path(), 40);
  EXPECT_EQ(written.back().values.at("_runtime"), "5");
  const std::string before = folder();
  auto second = logger();
  second.open(start());
  EXPECT_GT(folder(), before) << "a resumed run continues the newest folder";
}

TEST_F(WandbLoggerTest, AResumedRunIsSentAgain) {
  auto first = logger();
  first.open(start());
  steps(first, 1, 3);
  first.finish(false);
  write_text(path() + ".synced", "");
  auto resumed = logger();
  resumed.open(start(3));
  EXPECT_FALSE(disk_.exists(path() + ".synced"));
}

TEST_F(WandbLoggerTest, NumbersThatAreNotFiniteAreThePackagesWords) {
  auto one = logger();
  one.open(start());
  const double infinity = std::numeric_limits<double>::infinity();
  one.log_metrics({{"a", std::nan("")}, {"b", infinity}, {"c", -infinity}, {"d", 0.1}}, at(1, 0));
  one.finish(false);
  EXPECT_EQ(rows().front().second,
            (WandbValues{{"_step", "0"}, {"a", "NaN"}, {"b", "Infinity"}, {"c", "-Infinity"}, {"d", "0.1"}}));
}

TEST_F(WandbLoggerTest, ImagesWithMasksAndPagesAreFilesOfTheRun) {
  auto one = logger();
  one.open(start());
  LoggedImages images{"Images/Train", 2, 1, 1, 1, {0, 255}};
  images.masks.push_back({"prediction", 1, 1, {1, 300}});
  one.log_images(images, at(3, 2));
  one.log_table({"../../out", {"<in>"}, {{"a&b"}}}, at(3, 2));
  one.finish(false);
  const auto row = rows().front().second;
  EXPECT_THAT(row.at("Images/Train"),
              AllOf(HasSubstr("\"_type\": \"images/separated\""), HasSubstr("\"count\": 2"),
                    HasSubstr("\"media/images/Images/Train_2_1.png\""),
                    HasSubstr("\"path\": \"media/images/mask/Images/Train/prediction_2_0.mask.png\"")));
  EXPECT_THAT(read_text(folder() + "/files/media/images/Images/Train_2_1.png"), HasSubstr("PNG"));
  EXPECT_THAT(read_text(folder() + "/files/media/html/_./_./out_2.html"),
              AllOf(HasSubstr("<th>&lt;in></th>"), HasSubstr("<td>a&amp;b</td>")));
  EXPECT_THAT(read_text(path()), HasSubstr("Images/Train_wandb_delimeter_prediction"));
}

TEST_F(WandbLoggerTest, FiguresOfTheMachineHaveThePackagesNames) {
  auto one = logger();
  one.open(start());
  one.log_metrics({{"cpu_percentage", 12.5}, {"cpu_memory_available", 1 << 20}}, at(1, 0));
  one.log_metrics({{"cpu_percentage", 99.5}}, at(1, 0));  // within ten seconds
  one.finish(false);
  EXPECT_THAT(read_text(path()), AllOf(HasSubstr("\x03"
                                                 "cpu\x82\x01\x04"
                                                 "12.5"),
                                       HasSubstr("proc.memory.availableMB"),
                                       testing::Not(HasSubstr("\x03"
                                                              "cpu\x82\x01\x04"
                                                              "99.5"))));
}

}  // namespace
}  // namespace tutti
