#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <sstream>

#include "io/formats/event_file.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"
#include "tests/runtime/stalled_pipe.h"
#include "training/loggers/console_logger.h"
#include "training/loggers/file_logger.h"
#include "training/loggers/in_memory.h"
#include "training/loggers/tensorboard_logger.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> found;
  std::istringstream lines(read_text(path));
  for (std::string line; std::getline(lines, line);) found.push_back(line);
  return found;
}

class LoggersTest : public testing::Test {
 protected:
  LogStart start(int64_t step = 0) const {
    LogStart start{.run_name = "trial", .run_dir = scratch_.path(), .max_duration = Time::parse("3ep")};
    start.dataloader_len = 4;
    start.step = start.at.batch = step;
    start.at.epoch = step / 4;
    start.at.batch_in_epoch = step % 4;
    start.resumes = step > 0;
    return start;
  }

  // When step `step` is under way, or over.
  static LogTime during(int64_t step) {
    LogTime time{.step = step};
    time.at.batch = step - 1;
    time.at.epoch = (step - 1) / 4;
    time.at.batch_in_epoch = (step - 1) % 4;
    return time;
  }
  static LogTime after(int64_t step) { return {step, during(step + 1).at}; }

  // Steps of a run, each with a loss of its own number.
  static void steps(LoggerDestination& logger, int64_t first, int64_t last) {
    for (int64_t step = first; step <= last; ++step) {
      logger.log_metrics({{"loss", static_cast<double>(step)}}, during(step));
      logger.step_end(after(step));
      logger.flush(false);
    }
  }

  Scratch scratch_;
  PosixDisk disk_;
};

TEST_F(LoggersTest, FileHasEverythingAsText) {
  FileLogger logger(disk_, {"{run_name}/logs-rank{rank}.txt"}, /*log_traces=*/true);
  logger.open(start());
  logger.log_hyperparameters({{"lr", 0.1}, {"nesterov", true}, {"kind", std::string("sgd")}}, during(1));
  logger.log_metrics({{"loss", 1.0 / 3}}, during(1));
  logger.log_traces({{"EMA/batch_end", 1}}, after(1));
  logger.log_text({"sample", "two\nlines"}, after(1));
  logger.log_table({"examples", {"in", "out"}, {{"a", "\"b\""}}}, after(1));
  EXPECT_TRUE(logger.finish(false));
  EXPECT_THAT(lines_of(scratch_.path("trial/logs-rank0.txt")),
              ElementsAre("[hyperparameter][step=1][batch=0]: lr: 0.1",
                          "[hyperparameter][step=1][batch=0]: nesterov: true",
                          "[hyperparameter][step=1][batch=0]: kind: sgd",
                          "[metric][step=1][batch=0]: loss: 0.3333333333333333",
                          "[trace][step=1][batch=1]: EMA/batch_end: 1",
                          "[text][step=1][batch=1]: sample: two\\nlines",
                          "[table][step=1][batch=1]: examples: {\"columns\": [\"in\", \"out\"], \"rows\": "
                          "[[\"a\", \"\\\"b\\\"\"]]}"));
}

TEST_F(LoggersTest, FileLeavesTracesOutWhereTheyAreNotWanted) {
  FileLogger logger(disk_, {"log.txt"}, /*log_traces=*/false);
  logger.open(start());
  logger.log_traces({{"EMA/batch_end", 1}}, after(1));
  logger.finish(false);
  EXPECT_THAT(lines_of(scratch_.path("log.txt")), IsEmpty());
}

TEST_F(LoggersTest, CsvHasARowForEachValue) {
  CsvLogger logger(disk_, {"m.csv"});
  logger.open(start());
  logger.log_metrics({{"loss", 0.5}, {"odd, name", 2}}, during(5));
  logger.finish(false);
  EXPECT_THAT(lines_of(scratch_.path("m.csv")),
              ElementsAre("step,batch,epoch,name,value", "5,4,2,loss,0.5", "5,4,2,\"odd, name\",2"));
}

TEST_F(LoggersTest, ARunThatResumesCutsTheLinesOfStepsThatAreDoneAgain) {
  const auto run = [&](LoggerDestination&& whole, LoggerDestination&& killed, LoggerDestination&& resumed,
                       const std::string& whole_path, const std::string& path) {
    whole.open(start());
    steps(whole, 1, 6);
    whole.finish(false);
    killed.open(start());
    steps(killed, 1, 5);
    write_text(path, read_text(path) + "6,[metric][step=6");  // torn
    resumed.open(start(3));
    steps(resumed, 4, 6);
    resumed.finish(false);
    EXPECT_EQ(read_text(path), read_text(whole_path));
    EXPECT_THAT(lines_of(path), SizeIs(testing::Ge(6u)));
  };
  const auto file = [&](const char* name) { return FileLogger(disk_, {name}, true); };
  const auto csv = [&](const char* name) { return CsvLogger(disk_, {name}); };
  const auto jsonl = [&](const char* name) { return JsonlLogger(disk_, {name}); };
  run(file("1.txt"), file("2.txt"), file("2.txt"), scratch_.path("1.txt"), scratch_.path("2.txt"));
  run(csv("1.csv"), csv("2.csv"), csv("2.csv"), scratch_.path("1.csv"), scratch_.path("2.csv"));
  run(jsonl("1.js"), jsonl("2.js"), jsonl("2.js"), scratch_.path("1.js"), scratch_.path("2.js"));
}

TEST_F(LoggersTest, ARunThatStartsAfreshKeepsTheEarlierFileBesideItsOwn) {
  for (int64_t step = 1; step <= 2; ++step) {
    CsvLogger logger(disk_, {"m.csv"});
    logger.open(start());
    steps(logger, step, step);
    logger.finish(false);
  }
  EXPECT_THAT(lines_of(scratch_.path("m.earlier.csv")), ElementsAre(testing::_, "1,0,1,loss,1"));
  EXPECT_THAT(lines_of(scratch_.path("m.csv")), ElementsAre(testing::_, "2,1,1,loss,2"));
}

// Logs what a run that was over finds once more: an evaluation after its last step, now in the next epoch.
void log_last_evaluation(LoggerDestination& logger, LogTime time, int64_t epoch) {
  time.at.epoch = epoch;
  logger.log_metrics({{"metrics/eval/a", 0.5}}, time);
  logger.step_end(time);
  logger.finish(false);
}

TEST_F(LoggersTest, ARunThatWasOverRepeatsNoLine) {
  const auto run = [&](LoggerDestination&& first, LoggerDestination&& again, const std::string& path) {
    first.open(start());
    steps(first, 1, 4);
    log_last_evaluation(first, after(4), 0);
    const auto once = lines_of(path);
    again.open(start(4));
    log_last_evaluation(again, after(4), 1);
    EXPECT_EQ(lines_of(path), once);
  };
  const auto file = [&] { return FileLogger(disk_, {"a.txt"}, true); };
  const auto csv = [&] { return CsvLogger(disk_, {"a.csv"}); };
  const auto jsonl = [&] { return JsonlLogger(disk_, {"a.js"}); };
  run(file(), file(), scratch_.path("a.txt"));
  run(csv(), csv(), scratch_.path("a.csv"));
  run(jsonl(), jsonl(), scratch_.path("a.js"));
}

TEST_F(LoggersTest, APipeOrFolderIsNotOverwritten) {
  const std::string pipe = scratch_.path("pipe"), folder = scratch_.path("folder");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  disk_.make_folders(folder + "/in");
  for (const bool resumes : {false, true}) {
    EXPECT_THROW(CsvLogger(disk_, {pipe}).open(start(resumes ? 3 : 0)), OperatingError);
    EXPECT_THROW(JsonlLogger(disk_, {folder}).open(start(resumes ? 3 : 0)), OperatingError);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
  EXPECT_TRUE(disk_.exists(folder + "/in"));
}

TEST_F(LoggersTest, LinesWaitInMemoryForAsManyBatchesAsAllowed) {
  CsvLogger logger(disk_, {"m.csv", /*flush_interval=*/3});
  logger.open(start());
  steps(logger, 1, 2);
  EXPECT_EQ(read_text(scratch_.path("m.csv")), "");
  steps(logger, 3, 4);
  EXPECT_THAT(lines_of(scratch_.path("m.csv")), SizeIs(1 + 3));
  logger.flush(/*sync=*/true);
  EXPECT_THAT(lines_of(scratch_.path("m.csv")), SizeIs(1 + 4));
}

TEST_F(LoggersTest, JsonLinesHaveEveryKindOfRecord) {
  JsonlLogger logger(disk_, {"log.jsonl"});
  logger.open(start());
  logger.log_hyperparameters({{"lr", 0.5}, {"nesterov", true}}, during(1));
  logger.log_metrics({{"loss", 0.25}}, during(2));
  logger.log_traces({{"EMA/batch_end", 0}}, after(2));
  logger.log_text({"sample", "\"x\""}, after(2));
  logger.log_table({"t", {"a"}, {{"1"}, {"2"}}}, after(2));
  logger.finish(false);
  const std::string tail = "\"step\": 2, \"batch\": 2, \"epoch\": 1, ";
  EXPECT_THAT(lines_of(scratch_.path("log.jsonl")),
              ElementsAre("{\"type\": \"hyperparameters\", \"step\": 1, \"batch\": 0, \"epoch\": 1, "
                          "\"hyperparameters\": {\"lr\": 0.5, \"nesterov\": true}}",
                          "{\"type\": \"metrics\", \"step\": 2, \"batch\": 1, \"epoch\": 1, \"metrics\": "
                          "{\"loss\": 0.25}}",
                          "{\"type\": \"traces\", " + tail + "\"traces\": {\"EMA/batch_end\": 0}}",
                          "{\"type\": \"text\", " + tail + "\"name\": \"sample\", \"text\": \"\\\"x\\\"\"}",
                          "{\"type\": \"table\", " + tail +
                              "\"name\": \"t\", \"columns\": [\"a\"], \"rows\": [[\"1\"], [\"2\"]]}"));
}

// White grey-scale images.
LoggedImages white(int64_t count, int64_t size) {
  LoggedImages images{"Images/Train", count, size, size, 1};
  images.pixels.assign(count * size * size, 255);
  return images;
}

TEST_F(LoggersTest, FilesOfLinesHaveNoImages) {
  const auto lines_after_images = [&](LoggerDestination&& logger, const std::string& path) {
    logger.open(start());
    const auto before = lines_of(path).size();
    logger.log_images(white(2, 4), during(1));
    logger.finish(false);
    return lines_of(path).size() - before;
  };
  EXPECT_EQ(lines_after_images(FileLogger(disk_, {"a.txt"}, true), scratch_.path("a.txt")), 0u);
  EXPECT_EQ(lines_after_images(JsonlLogger(disk_, {"a.js"}), scratch_.path("a.js")), 0u);
}

class ConsoleLoggerTest : public LoggersTest {
 protected:
  // The output over the steps up to `last`, of epochs of 4.
  std::string printed(const std::string& interval, int64_t last) {
    std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
    ConsoleLogger logger(Time::parse(interval), out, false);
    logger.open(start());
    steps(logger, 1, last);
    logger.finish(false);
    std::fclose(out);
    return read_text(scratch_.path("out"));
  }
};

TEST_F(ConsoleLoggerTest, PrintsTheLatestEverySoOften) {
  EXPECT_EQ(printed("2ba", 5),
            "[epoch=1/3][batch=2/4]:\n\t Train loss: 2\n"
            "[epoch=1/3][batch=4/4]:\n\t Train loss: 4\n"
            "[epoch=2/3][batch=1/4]:\n\t Train loss: 5\n");
}

TEST_F(ConsoleLoggerTest, PrintsAtTheEndsOfEpochs) {
  EXPECT_EQ(printed("1ep", 8),
            "[epoch=1/3][batch=4/4]:\n\t Train loss: 4\n"
            "[epoch=2/3][batch=4/4]:\n\t Train loss: 8\n");
}

TEST_F(ConsoleLoggerTest, PrintsAfterAnIntervalInAnyUnit) {
  for (const char* interval : {"0.5dur", "32sp", "4sec"}) {  // of 8 batches, of 8 samples and a second each
    std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
    ConsoleLogger logger(Time::parse(std::string_view(interval)), out, false);
    LogStart begins = start();
    begins.max_duration = Time::parse("8ba");
    logger.open(begins);
    for (int64_t step = 1; step <= 5; ++step) {
      LogTime time = after(step);
      time.at.sample = 8 * step;
      time.at.total_wct = static_cast<double>(step);
      logger.log_metrics({{"loss", static_cast<double>(step)}}, during(step));
      logger.step_end(time);
    }
    std::fclose(out);
    EXPECT_EQ(read_text(scratch_.path("out")), "[batch=4/8]:\n\t Train loss: 4\n") << interval;
  }
}

TEST_F(ConsoleLoggerTest, PrintsEvaluationsWheneverTheyCome) {
  std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
  ConsoleLogger logger(Time::parse("100ba"), out, false);
  logger.open(start());
  logger.log_metrics({{"metrics/eval/MulticlassAccuracy", 0.87654}, {"metrics/train/x", 1e-5}}, after(2));
  logger.step_end(after(2));
  std::fflush(out);
  EXPECT_EQ(read_text(scratch_.path("out")),
            "[epoch=1/3][batch=2/4]:\n\t Eval metrics/eval/MulticlassAccuracy: 0.8765\n");
  logger.finish(false);
  std::fclose(out);
  EXPECT_THAT(read_text(scratch_.path("out")), HasSubstr("Train metrics/train/x: 1.0000E-05"));
}

TEST_F(ConsoleLoggerTest, NamesAndTextsOfOthersReachNoTerminalRaw) {
  std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
  ConsoleLogger logger(Time::parse("1ba"), out, false);
  logger.open(start());
  logger.log_hyperparameters({{"a\xc2\x9b", true}}, during(1));
  logger.log_text({"sample\x1b[1m", "two\n\tlines \xe2\x82"}, after(1));
  logger.log_metrics({{"b\x1b[2J", 1}}, during(1));
  logger.step_end(after(1));
  std::fclose(out);
  EXPECT_EQ(read_text(scratch_.path("out")),
            "\"a\\u009b\": true\nsample\\x1b[1m: two\n\tlines \xef\xbf\xbd\n"
            "[epoch=1/3][batch=1/4]:\n\t Train b\\x1b[2J: 1\n");
}

TEST_F(ConsoleLoggerTest, FollowsAMaxDurationThatChanges) {
  std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
  ConsoleLogger logger(Time::parse("1ba"), out, false);
  logger.open(start());
  logger.log_step({.max_duration = Time::parse("5ep")}, during(1));
  logger.step_end(after(1));
  std::fclose(out);
  EXPECT_THAT(read_text(scratch_.path("out")), StartsWith("[epoch=1/5][batch=1/4]:\n"));
}

TEST_F(ConsoleLoggerTest, PrintsATableOnceAsItLastWas) {
  std::FILE* out = std::fopen(scratch_.path("out").c_str(), "w");
  ConsoleLogger logger(Time::parse("2ba"), out, false);
  logger.open(start());
  logger.log_table({"generations", {"prompt"}, {{"before"}}}, after(1));
  logger.step_end(after(1));
  logger.log_table({"generations", {"prompt"}, {{"a"}}}, after(2));
  logger.step_end(after(2));
  logger.step_end(after(4));
  logger.finish(false);
  std::fclose(out);
  EXPECT_EQ(
      read_text(scratch_.path("out")),
      "[epoch=1/3][batch=2/4]:\n\t Train generations: {\"columns\": [\"prompt\"], \"rows\": [[\"a\"]]}\n");
}

TEST_F(ConsoleLoggerTest, AReaderThatStallsHoldsNobodyUp) {
  StalledPipe pipe;
  std::vector<std::string> warnings;
  ConsoleLogger logger(Time::parse("1ba"), pipe.out, false,
                       [&](const std::string& what) { warnings.push_back(what); });
  logger.open(start());
  steps(logger, 1, 5000);
  EXPECT_TRUE(logger.busy());
  EXPECT_FALSE(logger.finish(false));
  EXPECT_THAT(warnings, IsEmpty());
  EXPECT_TRUE(logger.finish(true));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("10000 lines were not shown")));
}

TEST_F(LoggersTest, InMemoryGivesTimeseries) {
  InMemoryLogger logger;
  logger.log_hyperparameters({{"lr", 0.5}}, during(1));
  steps(logger, 1, 3);
  logger.log_traces({{"EMA/batch_end", 1}}, after(3));
  const auto series = logger.get_timeseries("loss");
  ASSERT_THAT(series, SizeIs(3));
  EXPECT_EQ(series[2].value, 3);
  EXPECT_EQ(series[2].time.at.batch, 2);
  EXPECT_THAT(logger.names(), ElementsAre("loss", "EMA/batch_end"));
  EXPECT_THAT(logger.get_timeseries("nothing"), IsEmpty());
  EXPECT_THAT(logger.hyperparameters(), SizeIs(1));
}

TEST_F(LoggersTest, InMemoryKeepsTablesAndImages) {
  InMemoryLogger logger;
  logger.log_table({"t", {"a"}, {{"1"}}}, after(1));
  logger.log_images(white(2, 4), during(2));
  ASSERT_THAT(logger.tables(), SizeIs(1));
  EXPECT_THAT(logger.tables()[0].rows, ElementsAre(ElementsAre("1")));
  ASSERT_THAT(logger.images(), SizeIs(1));
  EXPECT_THAT(logger.images()[0].pixels, SizeIs(32));
  EXPECT_EQ(logger.entries()[1].time.at.batch, 1);
}

// Makes the clock stand still.
struct NoTime final : Clock {
  TimePoint now() const override { return {}; }
  int64_t unix_ms() const override { return 1'700'000'000'500; }
};

TEST_F(LoggersTest, EveryAttemptWritesItsOwnEventFile) {
  const NoTime clock;
  for (const int64_t from : {0, 3}) {
    TensorboardLogger logger(disk_, clock, {.log_dir = "tb"});
    logger.open(start(from));
    steps(logger, from + 1, from + 1);
    logger.finish(false);
  }
  EXPECT_THAT(disk_.list(scratch_.path("tb")), ElementsAre("events.out.tfevents.1700000000.tutti.00000",
                                                           "events.out.tfevents.1700000000.tutti.00001"));
}

TEST_F(LoggersTest, EventFilesStayInOrderThoughTheClockIsSetBack) {
  struct ClockSetBack final : Clock {
    TimePoint now() const override { return {}; }
    int64_t unix_ms() const override { return ms; }
    int64_t ms = 1'700'000'000'500;
  } clock;
  for (const int64_t from : {0, 1, 2}) {
    TensorboardLogger(disk_, clock, {.log_dir = "tb"}).open(start(from));
    clock.ms -= 3'600'000;
  }
  EXPECT_THAT(disk_.list(scratch_.path("tb")), ElementsAre("events.out.tfevents.1700000000.tutti.00000",
                                                           "events.out.tfevents.1700000000.tutti.00001",
                                                           "events.out.tfevents.1700000000.tutti.00002"));
}

TEST_F(LoggersTest, ARunThatWasOverRepeatsNoPoint) {
  const NoTime clock;
  const auto run = [&](int64_t from, int64_t last) {
    TensorboardLogger logger(disk_, clock, {.log_dir = "tb"});
    logger.open(start(from));
    steps(logger, from + 1, last);
    log_last_evaluation(logger, after(last), 0);
  };
  run(0, 4);
  run(4, 4);
  run(2, 4);
  const auto names = disk_.list(scratch_.path("tb"));
  ASSERT_THAT(names, SizeIs(3));
  const auto found = [&](std::size_t which) {
    return records_of_step(disk_, {scratch_.path("tb/" + names[which])}, 4).size();
  };
  EXPECT_EQ(found(0), 1u);
  EXPECT_EQ(found(1), 0u) << "it is there already";
  EXPECT_EQ(found(2), 1u) << "the one that was there is void";
}

TEST_F(LoggersTest, PicturesMayBeLargerThanWhatWaits) {
  const NoTime clock;
  TensorboardLogger logger(disk_, clock, {.log_dir = "tb", .flush_interval = 100});
  logger.open(start());
  logger.log_metrics({{"loss", 0.5}}, during(4));
  LoggedImages images = white(8, 500);  // 2 MB in all
  images.masks = {{"prediction", 500, 500, std::vector<int32_t>(8 * 500 * 500, 1)}};
  logger.log_images(images, during(4));
  logger.log_metrics({{"loss", 0.25}}, during(4));
  logger.finish(false);
  const auto names = disk_.list(scratch_.path("tb"));
  EXPECT_THAT(records_of_step(disk_, {scratch_.path("tb/" + names.at(0))}, 3), SizeIs(4));
}

TEST_F(LoggersTest, ARunThatWasOverRepeatsNoPicture) {
  const NoTime clock;
  for (int again = 0; again < 2; ++again) {
    TensorboardLogger logger(disk_, clock, {.log_dir = "tb"});
    logger.open(start(again == 0 ? 0 : 4));
    logger.log_images(white(1, 2), after(4));
    logger.finish(false);
  }
  const auto names = disk_.list(scratch_.path("tb"));
  ASSERT_THAT(names, SizeIs(2));
  EXPECT_THAT(records_of_step(disk_, {scratch_.path("tb/" + names[0])}, 4), SizeIs(1));
  EXPECT_THAT(records_of_step(disk_, {scratch_.path("tb/" + names[1])}, 4), SizeIs(0));
}

}  // namespace
}  // namespace tutti
