#include "training/callbacks/stoppers/stoppers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/error.h"
#include "tests/training/callbacks/by_hand.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST_F(CallbackTest, NaNMonitorEndsTheRunWithTheStepsNumber) {
  NaNMonitor monitor;
  state_.train_loss = 2.5;
  EXPECT_NO_THROW(batch(monitor, 1.0));
  state_.train_loss = std::nan("");
  EXPECT_THAT([&] { batch(monitor, 1.0); },
              ThrowsMessage<OperatingError>(HasSubstr("step 2 is not a number")));
}

WatchedMetric metric(const char* name, const char* label = "eval", const char* comp = "") {
  return WatchedMetric({Setting(std::string(name), "callbacks.0.monitor", {"test.toml", 7}), label, comp});
}

WatchedMetric accuracy() { return metric("MulticlassAccuracy"); }

TEST_F(CallbackTest, EarlyStopperWaitsForItsPatience) {
  EarlyStopper stopper(accuracy(), 0.0, Time(1, TimeUnit::kEpoch));
  for (const double value : {0.5, 0.6, 0.6}) {
    end_epoch(stopper);
    measured(stopper, value);
    EXPECT_FALSE(stopped()) << value;
  }
  end_epoch(stopper);
  measured(stopper, 0.55);
  EXPECT_EQ(state_.max_duration.unit(), TimeUnit::kBatch);
  EXPECT_TRUE(stopped());
}

TEST_F(CallbackTest, EarlyStopperTakesANumberForBetterThanNone) {
  EarlyStopper stopper(accuracy(), 0.0, Time(1, TimeUnit::kBatch));
  for (const double value : {std::nan(""), 0.5, 0.6, 0.7}) {
    measured(stopper, value);
    EarlyStopper resumed(accuracy(), 0.0, Time(1, TimeUnit::kBatch));
    resumed.restore(stopper.state());
    EXPECT_EQ(resumed.state(), stopper.state());
    batch(stopper, 1.0);
  }
  EXPECT_FALSE(stopped());
  EarlyStopper without_numbers(accuracy(), 0.0, Time(1, TimeUnit::kBatch));
  for (int i = 0; i < 4; ++i) {
    measured(without_numbers, std::nan(""));
    batch(without_numbers, 1.0);
  }
  EXPECT_TRUE(stopped());
}

TEST_F(CallbackTest, EarlyStopperTakesSmallGainsForNone) {
  EarlyStopper stopper(accuracy(), -0.1, Time(1, TimeUnit::kBatch));
  measured(stopper, 0.5);
  for (const double value : {0.55, 0.58}) {
    batch(stopper, 1.0);
    measured(stopper, value);
  }
  EXPECT_TRUE(stopped());
}

TEST_F(CallbackTest, EarlyStopperWantsLessOfALoss) {
  EarlyStopper stopper(metric("LossMetric"), 0.0, Time(1, TimeUnit::kBatch));
  for (const double value : {3.0, 2.0, 1.0, 0.5}) {
    measured(stopper, value, "LossMetric");
    batch(stopper, 1.0);
  }
  EXPECT_FALSE(stopped());
}

TEST_F(CallbackTest, EarlyStopperResumesWhereItWas) {
  EarlyStopper stopper(accuracy(), 0.0, Time(2, TimeUnit::kBatch)),
      resumed(accuracy(), 0.0, Time(2, TimeUnit::kBatch));
  batch(stopper, 1.0);
  measured(stopper, 0.9);
  resumed.restore(stopper.state());
  for (int i = 0; i < 2; ++i) {
    batch(resumed, 1.0);
    measured(resumed, 0.8);
    EXPECT_FALSE(stopped());
  }
  batch(resumed, 1.0);
  measured(resumed, 0.8);
  EXPECT_TRUE(stopped());
}

TEST_F(CallbackTest, EarlyStopperLooksAtBatchesOfTheTrainingWhereItsPatienceIsInBatches) {
  EarlyStopper in_batches(metric("MulticlassAccuracy", "train"), 10.0, Time(2, TimeUnit::kBatch));
  EarlyStopper in_epochs(metric("MulticlassAccuracy", "train"), 10.0, Time(1, TimeUnit::kEpoch));
  EXPECT_NO_THROW(batch(in_epochs, 1.0)) << "it looks for a metric that is not there yet";
  state_.timestamp = {};
  state_.metric_values["train/MulticlassAccuracy"] = 0.5;
  while (!stopped() && state_.timestamp.batch < 9) batch(in_batches, 1.0);
  EXPECT_EQ(state_.timestamp.batch, 4);
}

TEST_F(CallbackTest, EarlyStopperLooksAtNoBatchForAMetricOfEvaluations) {
  EarlyStopper stopper(accuracy(), 0.0, Time(2, TimeUnit::kBatch));
  measured(stopper, 0.5);
  for (int i = 0; i < 5; ++i) batch(stopper, 1.0);
  EXPECT_FALSE(stopped());
}

TEST(EarlyStopperTest, PatienceIsInEpochsOrBatches) {
  EXPECT_THAT([] { EarlyStopper(accuracy(), 0.0, Time(5, TimeUnit::kSample)); },
              ThrowsMessage<UserError>(HasSubstr("5sp")));
}

TEST_F(CallbackTest, ThresholdStopperStopsAboveItsThreshold) {
  ThresholdStopper stopper(accuracy(), 0.8, false);
  measured(stopper, 0.8);
  EXPECT_NE(state_.max_duration.unit(), TimeUnit::kBatch);
  measured(stopper, 0.81);
  EXPECT_EQ(state_.max_duration.unit(), TimeUnit::kBatch);
}

TEST_F(CallbackTest, AMonitorMayBeWrittenAsItIsLogged) {
  for (const char* name : {"eval/CrossEntropy", "metrics/eval/CrossEntropy"}) {
    state_.max_duration = Time(4, TimeUnit::kEpoch);
    state_.measured = {{"eval", {"CrossEntropy"}}, {"far", {"loss"}}};
    ThresholdStopper stopper(metric(name), 0.8, false);
    stopper.require(state_);
    measured(stopper, 0.7, "CrossEntropy");
    EXPECT_EQ(state_.max_duration.unit(), TimeUnit::kBatch) << name;
  }
  EXPECT_THAT([&] { metric("metrics/far/loss").require(state_); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("test.toml:7: callbacks.0.monitor = \"metrics/far/loss\": it is measured"),
                        HasSubstr("set dataloader_label = \"far\""))));
  EXPECT_NO_THROW(metric("metrics/far/loss", "far").require(state_));
}

TEST_F(CallbackTest, ThresholdStopperStopsBelowItWhereLessIsBetter) {
  ThresholdStopper stopper(metric("CrossEntropy", "eval", "less"), 0.8, false);
  measured(stopper, 0.9, "CrossEntropy");
  EXPECT_NE(state_.max_duration.unit(), TimeUnit::kBatch);
  measured(stopper, 0.7, "CrossEntropy");
  EXPECT_EQ(state_.max_duration.unit(), TimeUnit::kBatch);
}

TEST_F(CallbackTest, ThresholdStopperLooksAtTrainingMetricsAfterEpochsOrBatches) {
  const WatchedMetric trained = metric("MulticlassAccuracy", "train");
  ThresholdStopper patient(trained, 0.8, false), eager(trained, 0.8, true);
  state_.metric_values["train/MulticlassAccuracy"] = 0.9;
  batch(patient, 1.0);
  EXPECT_FALSE(stopped());
  end_epoch(patient);
  EXPECT_TRUE(stopped());
  state_.max_duration = Time(4, TimeUnit::kEpoch);
  batch(eager, 1.0);
  EXPECT_TRUE(stopped());
}

TEST_F(CallbackTest, AMetricThatNothingMeasuresIsAnErrorBeforeTheTraining) {
  state_.model = std::make_shared<TwiceTwice>();
  ThresholdStopper good(accuracy(), 0.8, false);
  EXPECT_NO_THROW(good.run_event(Event::kAfterLoad, state_, logged_));
  EarlyStopper typo(metric("MulticlasAccuracy"), 0.0, Time(1, TimeUnit::kEpoch));
  EXPECT_THAT([&] { typo.require(state_); },
              ThrowsMessage<UserError>(
                  AllOf(HasSubstr("test.toml:7"), HasSubstr("did you mean MulticlassAccuracy?"))));
}

TEST_F(CallbackTest, AnEvaluatorThatDoesNotMeasureItIsAnErrorThatNamesIt) {
  ThresholdStopper stopper(metric("MulticlassAccuracy", "other"), 0.8, false);
  state_.dataloader_label = "other";
  EXPECT_THAT([&] { stopper.run_event(Event::kEvalEnd, state_, logged_); },
              ThrowsMessage<UserError>(AllOf(HasSubstr("test.toml:7"), HasSubstr("\"other\""))));
}

}  // namespace
}  // namespace tutti
