#include "training/callbacks/monitors/activation_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/training/callbacks/by_hand.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class WithModel : public CallbackTest {
 protected:
  WithModel() { state_.model = std::make_shared<TwiceTwice>(); }

  void microbatch(Callback& callback, const at::Tensor& input) {
    callback.run_event(Event::kBeforeForward, state_, logged_);
    state_.model->forward(TensorTree(input));
    callback.run_event(Event::kAfterForward, state_, logged_);
  }
  void attempt(Callback& callback, const std::vector<at::Tensor>& microbatches) {
    callback.run_event(Event::kBeforeTrainBatch, state_, logged_);
    for (const auto& one : microbatches) microbatch(callback, one);
  }
  void step(Callback& callback, const std::vector<at::Tensor>& microbatches) {
    logged_.values.clear();
    attempt(callback, microbatches);
    callback.run_event(Event::kAfterTrainBatch, state_, logged_);
    state_.to_next_batch(32, 0, 1.0);
    callback.run_event(Event::kBatchEnd, state_, logged_);
  }
  // The batches before which steps were logged, of six.
  std::vector<int64_t> logged_at(Callback& callback);
  std::unique_ptr<ActivationMonitor> activations(const char* interval,
                                                 std::vector<std::string> ignored = {}) {
    auto monitor = std::make_unique<ActivationMonitor>(Time::parse(std::string_view(interval)), ignored);
    monitor->run_event(Event::kFitStart, state_, logged_);
    return monitor;
  }
};

const at::Tensor& four() {
  static const at::Tensor numbers = at::tensor({1.0F, 2.0F, 3.0F, 4.0F}).view({1, 4});
  return numbers;
}

std::vector<int64_t> WithModel::logged_at(Callback& callback) {
  std::vector<int64_t> found;
  for (int i = 0; i < 6; ++i) {
    const int64_t now = state_.timestamp.batch;
    step(callback, {four()});
    if (!logged_.values.empty()) found.push_back(now);
  }
  return found;
}

TEST_F(WithModel, ActivationMonitorLogsStatisticsOfTheLastDimension) {
  const auto monitor = activations("1ba");
  step(*monitor, {at::cat({four(), four() * 3})});
  const auto& at = logged_.values;
  EXPECT_EQ(at.size(), 16u);
  EXPECT_NEAR(at.at("activations/l2_norm/first_input.0"), 2 * std::sqrt(30.0), 1e-5);
  EXPECT_NEAR(at.at("activations/average/first_input.0"), 5.0, 1e-6);
  EXPECT_NEAR(at.at("activations/max/first_input.0"), 8.0, 1e-6);
  // The fourth moment over the squared second: 2.5625 / 1.25^2 of both rows.
  EXPECT_NEAR(at.at("activations/kurtosis/first_input.0"), 1.64, 1e-5);
  EXPECT_NEAR(at.at("activations/average/first_output.0"), 10.0, 1e-6);
  EXPECT_NEAR(at.at("activations/average/last_output.0"), 20.0, 1e-6);
}

TEST_F(WithModel, ActivationMonitorLooksAtTheFirstMicrobatch) {
  const auto monitor = activations("1ba");
  step(*monitor, {four(), four() * 100});
  EXPECT_NEAR(logged_.values.at("activations/average/first_input.0"), 2.5, 1e-6);
}

TEST_F(WithModel, ActivationMonitorForgetsAnAbortedAttempt) {
  const auto monitor = activations("1ba");
  attempt(*monitor, {four()});
  monitor->run_event(Event::kBeforeTrainBatch, state_, logged_);
  monitor->run_event(Event::kBeforeForward, state_, logged_);  // and in the forward pass memory ran out
  EXPECT_THAT(logged_.values, IsEmpty());
  step(*monitor, {four() * 2});
  EXPECT_NEAR(logged_.values.at("activations/average/first_input.0"), 5.0, 1e-6);
  EXPECT_EQ(logged_.numbers, 16u);
}

// A closure asks for a pass more, in which memory runs out.
TEST_F(WithModel, ActivationMonitorLogsTheFirstPassOfTheAttemptThatCounts) {
  const auto monitor = activations("2ba");
  const auto pass = [&](const at::Tensor& input) {
    logged_.values.clear();
    attempt(*monitor, {input});
    monitor->run_event(Event::kAfterTrainBatch, state_, logged_);
    return logged_.values.size();
  };
  EXPECT_EQ(pass(four()), 16u);
  EXPECT_EQ(pass(four()), 0u);
  monitor->run_event(Event::kAfterDataloader, state_, logged_);
  EXPECT_EQ(pass(four()), 16u);
  EXPECT_EQ(pass(four()), 0u);
  state_.to_next_batch(32, 0, 1.0);
  monitor->run_event(Event::kBatchEnd, state_, logged_);
  EXPECT_EQ(pass(four()), 0u) << "not due";
}

TEST_F(WithModel, ActivationMonitorKeepsItsInterval) {
  EXPECT_THAT(logged_at(*activations("2ba")), ElementsAre(0, 2, 4));
}

TEST_F(WithModel, ActivationMonitorKeepsAnIntervalInAnyUnit) {
  state_.max_duration = Time(12, TimeUnit::kBatch);
  for (const char* interval : {"90sp", "3sec", "0.25dur"}) {  // batches of 32 samples and a second
    state_.timestamp = {};
    state_.model = std::make_shared<TwiceTwice>();
    EXPECT_THAT(logged_at(*activations(interval)), ElementsAre(0, 3)) << interval;
  }
}

TEST_F(WithModel, ActivationMonitorLogsOnceThoughTrainingBeganTwice) {
  const auto monitor = activations("1ba");
  monitor->run_event(Event::kFitStart, state_, logged_);
  step(*monitor, {four()});
  EXPECT_EQ(logged_.numbers, 16u);
}

TEST_F(WithModel, ActivationMonitorLogsOnceAnEpochThoughResumedInIt) {
  const auto monitor = activations("1ep");
  step(*monitor, {four()});
  EXPECT_THAT(logged_.values, Not(IsEmpty()));
  step(*monitor, {four()});
  EXPECT_THAT(logged_.values, IsEmpty());
  const auto resumed = activations("1ep");
  resumed->restore(monitor->state());
  step(*resumed, {four()});
  EXPECT_THAT(logged_.values, IsEmpty());
  end_epoch(*resumed);
  step(*resumed, {four()});
  EXPECT_THAT(logged_.values, Not(IsEmpty()));
}

TEST_F(WithModel, ActivationMonitorSkipsIgnoredLayers) {
  const auto monitor = activations("1ba", {"fir"});
  step(*monitor, {four()});
  for (const auto& [key, value] : logged_.values) EXPECT_THAT(key, HasSubstr("last"));
  EXPECT_EQ(logged_.values.size(), 8u);
}

}  // namespace
}  // namespace tutti
