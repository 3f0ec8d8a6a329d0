#include "training/callbacks/writers/mlperf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/error.h"
#include "tests/runtime/scratch.h"
#include "tests/training/callbacks/by_hand.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

// Each look takes a millisecond.
struct TickingClock final : Clock {
  TimePoint now() const override { return {}; }
  int64_t unix_ms() const override { return ++ms; }
  mutable int64_t ms = 1000;
};

class MLPerfTest : public CallbackTest {
 protected:
  MLPerfTest() {
    state_.run_dir = folder_.path();
    state_.seed = 5;
    state_.global_batch = 32;
    state_.grad_accum = 2;
    state_.train_samples = 320;
    state_.eval_samples = 64;
    state_.measured = {{"eval", {"MulticlassAccuracy"}}, {"other", {"MulticlassAccuracy"}}};
  }

  MLPerfCallback callback(MLPerfCallback::Options options = {}) {
    options.root_folder = "mlperf";
    options.index = 3;
    return {disk_, recorder_, clock_, options};
  }
  void start(Callback& callback) {
    for (const Event event : {Event::kInit, Event::kAfterLoad, Event::kFitStart})
      callback.run_event(event, state_, logged_);
  }
  void epoch(Callback& callback, double accuracy) {
    callback.run_event(Event::kEpochStart, state_, logged_);
    batch(callback, 1.0);
    end_epoch(callback);
    state_.dataloader_label = "eval";
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
  int told(const std::string& what) const {
    int found = 0;
    for (const std::string& line : lines()) found += line.find(what) != std::string::npos;
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
  RingRecorder recorder_;
  std::shared_ptr<const Clock> clock_ = std::make_shared<TickingClock>();
};

TEST_F(MLPerfTest, LogsTheRunUpToItsTarget) {
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
  MLPerfCallback mlperf = callback({.submitter = "The \"best\""});
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
  MLPerfCallback mlperf = callback({.host_processors_per_node = 2});
  start(mlperf);
  EXPECT_THAT(read_text(folder_.path("mlperf/systems/1xCPU_tutti.json")),
              AllOf(HasSubstr(R"("submitter": "MosaicML", "division": "open", "status": "onprem")"),
                    HasSubstr(R"("host_processors_per_node": "2")")));
}

TEST_F(MLPerfTest, TimeOfBertIsInSamples) {
  MLPerfCallback mlperf = callback({.benchmark = "bert"});
  start(mlperf);
  epoch(mlperf, 0.5);
  EXPECT_THAT(read_text(folder_.path("mlperf/results/1xCPU_tutti/bert/result_3.txt")),
              HasSubstr(R"("value": 0.5, "metadata": {"epoch_num": 32}})"));
}

TEST_F(MLPerfTest, TrainingEndsAtTheTargetOnRequest) {
  MLPerfCallback on = callback(), out = callback({.exit_at_target = true, .exist_ok = true});
  start(on);
  epoch(on, 0.8);
  EXPECT_FALSE(stopped());
  start(out);
  epoch(out, 0.7);
  EXPECT_FALSE(stopped());
  epoch(out, 0.8);
  EXPECT_TRUE(stopped());
}

TEST_F(MLPerfTest, OtherEvaluatorsAreNotItsAffair) {
  MLPerfCallback mlperf = callback();
  start(mlperf);
  state_.dataloader_label = "other";
  state_.metric_values["other/MulticlassAccuracy"] = 0.9;
  for (const Event event : {Event::kEvalStart, Event::kEvalEnd}) mlperf.run_event(event, state_, logged_);
  EXPECT_EQ(keys().back(), "run_start");
  epoch(mlperf, 0.5);
  EXPECT_EQ(told("eval_accuracy"), 1);
}

TEST_F(MLPerfTest, AMetricThatNothingMeasuresIsAnErrorBeforeTheTraining) {
  const auto named = [](const char* name) {
    return Setting(std::string(name), "callbacks.0.metric_name", {"test.toml", 7});
  };
  MLPerfCallback typo = callback({.metric_name = named("MulticlasAccuracy")});
  EXPECT_THAT([&] { typo.require(state_); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("test.toml:7"), HasSubstr("did you mean MulticlassAccuracy?"))));
  MLPerfCallback elsewhere =
      callback({.metric_name = named("MulticlassAccuracy"), .metric_label = "evaluation"});
  EXPECT_THAT([&] { elsewhere.require(state_); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("test.toml:7"), HasSubstr("\"evaluation\""))));
}

TEST_F(MLPerfTest, AnOlderResultIsLeftAlone) {
  MLPerfCallback first = callback(), second = callback();
  start(first);
  EXPECT_THAT([&] { start(second); }, ThrowsMessage<UserError>(HasSubstr("result_3.txt already exists")));
}

TEST_F(MLPerfTest, ResumedRunResumesInItsFile) {
  MLPerfCallback first = callback(), second = callback();
  start(first);
  epoch(first, 0.5);
  const auto saved = lines();
  second.restore(first.state());
  epoch(first, 0.6);  // which is done again
  write_text(path(), read_text(path()) + "torn");
  start(second);
  EXPECT_EQ(lines(), saved);
  epoch(second, 0.8);
  for (const char* once : {"init_start", "run_start", "run_stop"}) EXPECT_EQ(told(once), 1) << once;
  EXPECT_EQ(told("eval_accuracy"), 2);
  const std::string done = second.state();
  MLPerfCallback third = callback();
  third.restore(done);
  const auto all = keys();
  EXPECT_EQ(all.back(), "run_stop");
  start(third);
  EXPECT_EQ(keys(), all);
}

TEST_F(MLPerfTest, RankZeroAloneWrites) {
  state_.topology.rank = 1;
  MLPerfCallback mlperf = callback();
  start(mlperf);
  epoch(mlperf, 0.5);
  EXPECT_THAT(disk_.list(folder_.path()), IsEmpty());
}

}  // namespace
}  // namespace tutti
