#include "training/callbacks/writers/mlperf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"
#include "tests/training/callbacks/by_hand.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

class MLPerfTest : public CallbackTest {
 protected:
  MLPerfTest() {
    state_.run_dir = folder_.path();
    state_.seed = 5;
    state_.global_batch = 32;
    state_.grad_accum = 2;
    state_.train_samples = 320;
    state_.eval_samples = 64;
  }

  MLPerfCallback callback(const std::string& submitter = "MosaicML") {
    return {disk_, [this] { return ++ms_; }, {.root_folder = "mlperf", .index = 3, .submitter = submitter}};
  }
  void start(Callback& callback) {
    for (const Event event : {Event::kInit, Event::kAfterLoad, Event::kFitStart})
      callback.run_event(event, state_, logged_);
  }
  void epoch(Callback& callback, double accuracy) {
    callback.run_event(Event::kEpochStart, state_, logged_);
    batch(callback, 1.0);
    end_epoch(callback);
    callback.run_event(Event::kEvalStart, state_, logged_);
    measured(callback, accuracy);
  }

  std::string path() const { return folder_.path("mlperf/results/1xCPU_tutti/resnet/result_3.txt"); }
  std::vector<std::string> lines() const {
    std::vector<std::string> found;
    std::istringstream text(read_text(path()));
    for (std::string line; std::getline(text, line);) found.push_back(line);
    return found;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> found;
    for (const std::string& line : lines()) {
      const auto from = line.find("\"key\": \"") + 8;
      found.push_back(line.substr(from, line.find('"', from) - from));
    }
    return found;
  }

  Scratch folder_;
  PosixDisk disk_;
  int64_t ms_ = 1000;
};

TEST_F(MLPerfTest, TellsTheRunUpToItsTarget) {
  MLPerfCallback mlperf = callback();
  start(mlperf);
  epoch(mlperf, 0.5);
  epoch(mlperf, 0.8);
  epoch(mlperf, 0.9);
  mlperf.close(state_, logged_);
  EXPECT_THAT(keys(),
              ElementsAre("init_start", "submission_benchmark", "submission_division", "submission_org",
                          "submission_platform", "submission_status", "seed", "global_batch_size",
                          "gradient_accumulation_steps", "train_samples", "eval_samples", "init_stop",
                          "run_start", "epoch_start", "block_start", "epoch_stop", "eval_start", "eval_stop",
                          "eval_accuracy", "block_stop", "epoch_start", "block_start", "epoch_stop",
                          "eval_start", "eval_stop", "eval_accuracy", "block_stop", "run_stop"));
}

TEST_F(MLPerfTest, LinesAreThoseOfItsLogger) {
  MLPerfCallback mlperf = callback("The \"best\"");
  start(mlperf);
  epoch(mlperf, 0.5);
  const auto found = lines();
  EXPECT_EQ(
      found.at(0),
      R"(:::MLLOG {"namespace": "", "time_ms": 1001, "event_type": "INTERVAL_START", "key": "init_start", )"
      R"("value": null, "metadata": {}})");
  EXPECT_THAT(found.at(3), HasSubstr(R"("value": "The \"best\"", "metadata")"));
  EXPECT_THAT(found.at(7), HasSubstr(R"("key": "global_batch_size", "value": 32,)"));
  EXPECT_THAT(found.at(9), HasSubstr(R"("key": "train_samples", "value": 320,)"));
  EXPECT_THAT(found.at(14), HasSubstr(R"("metadata": {"first_epoch_num": 0, "epoch_count": 1}})"));
  EXPECT_THAT(found.at(18), HasSubstr(R"("value": 0.5, "metadata": {"epoch_num": 1}})"));
}

TEST_F(MLPerfTest, DescribesTheSystem) {
  MLPerfCallback mlperf = callback();
  start(mlperf);
  EXPECT_THAT(read_text(folder_.path("mlperf/systems/1xCPU_tutti.json")),
              HasSubstr(R"("submitter": "MosaicML", "division": "open", "status": "onprem")"));
}

TEST_F(MLPerfTest, AnOlderResultIsLeftAlone) {
  MLPerfCallback first = callback(), second = callback();
  start(first);
  EXPECT_THAT([&] { start(second); }, ThrowsMessage<UserError>(HasSubstr("result_3.txt exists already")));
}

TEST_F(MLPerfTest, ResumedRunGoesOnInItsFile) {
  MLPerfCallback first = callback(), second = callback();
  start(first);
  epoch(first, 0.5);
  const std::size_t before = lines().size();
  second.restore(first.state());
  start(second);
  EXPECT_EQ(lines().size(), before + 13);
  epoch(second, 0.8);
  const std::string done = second.state();
  MLPerfCallback third = callback();
  third.restore(done);
  const auto all = keys();
  EXPECT_EQ(all.back(), "run_stop");
  start(third);
  EXPECT_EQ(keys(), all);
}

TEST_F(MLPerfTest, RankZeroAloneWrites) {
  state_.rank = 1;
  MLPerfCallback mlperf = callback();
  start(mlperf);
  epoch(mlperf, 0.5);
  EXPECT_THAT(disk_.list(folder_.path()), IsEmpty());
}

}  // namespace
}  // namespace tutti
