#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/error.h"
#include "tensors/memory/meter.h"
#include "tests/training/callbacks/by_hand.h"
#include "training/callbacks/monitors/memory_monitor.h"
#include "training/callbacks/monitors/runtime_estimator.h"
#include "training/callbacks/monitors/speed_monitor.h"

namespace tutti {
namespace {

using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using testing::UnorderedElementsAre;

TEST_F(CallbackTest, SpeedMonitorAveragesOverItsWindow) {
  SpeedMonitor monitor({.window_size = 2, .time_unit = "seconds"});
  state_.topology.world = 2;
  batch(monitor, 9.0);
  batch(monitor, 1.0);
  EXPECT_THAT(logged_.values, UnorderedElementsAre(Pair("time/train", 10.0), Pair("time/val", 0.0),
                                                   Pair("time/total", 10.0)));
  batch(monitor, 3.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/batches_per_sec"), 0.5);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/samples_per_sec"), 16.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/device/batches_per_sec"), 0.25);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/device/samples_per_sec"), 8.0);
  EXPECT_EQ(logged_.values.size(), 7u);
  batch(monitor, 1.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/samples_per_sec"), 16.0);
}

TEST_F(CallbackTest, SpeedMonitorLogsTokensAndFlopsWhereThereAreAny) {
  SpeedMonitor monitor({.window_size = 1});
  state_.device.name = "NVIDIA A100-SXM4-40GB";
  state_.precision.name = "amp_bf16";
  state_.flops = 78e12;
  batch(monitor, 1.0, 100);
  batch(monitor, 0.5, 100);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/tokens_per_sec"), 200.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/device/tokens_per_sec"), 200.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/flops_per_sec"), 156e12);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/device/mfu"), 0.5);
}

TEST_F(CallbackTest, SpeedMonitorBelievesThePeakItIsGiven) {
  SpeedMonitor monitor({.window_size = 1, .gpu_flops_available = 1e12});
  state_.topology.world = 2;
  state_.flops = 1e12;
  batch(monitor, 1.0);
  batch(monitor, 1.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("throughput/device/mfu"), 0.5);
}

TEST_F(CallbackTest, SpeedMonitorLogsHoursOfTrainingAndEvaluation) {
  SpeedMonitor monitor(SpeedMonitor::Options{});
  evaluation(monitor, 1800.0);
  evaluation(monitor, 1800.0);
  batch(monitor, 7200.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("time/train"), 2.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("time/val"), 1.0);
  EXPECT_DOUBLE_EQ(logged_.values.at("time/total"), 3.0);
}

TEST_F(CallbackTest, SpeedMonitorResumesWhereItWas) {
  const SpeedMonitor::Options options{.window_size = 3};
  SpeedMonitor monitor(options), resumed(options);
  for (const double seconds : {1.0, 2.0, 3.0, 0.7}) batch(monitor, seconds, 5);
  evaluation(monitor, 0.1);
  resumed.restore(monitor.state());
  const Timestamp then = state_.timestamp;
  batch(monitor, 2.0);
  const auto wanted = logged_.values;
  state_.timestamp = then;
  batch(resumed, 2.0);
  EXPECT_EQ(logged_.values, wanted);
}

TEST(PeakFlopsTest, AreThoseOfTheDataSheets) {
  EXPECT_EQ(peak_flops("NVIDIA H100 80GB HBM3", "amp_bf16"), 989.5e12);
  EXPECT_EQ(peak_flops("NVIDIA H100 PCIe", "amp_fp16"), 756.5e12);
  EXPECT_EQ(peak_flops("NVIDIA A100-SXM4-40GB", "fp32"), 19.5e12);
  EXPECT_EQ(peak_flops("NVIDIA A10G", "fp32"), 31.2e12);
  EXPECT_EQ(peak_flops("Tesla V100-SXM2-16GB", "amp_bf16"), 0);
  EXPECT_EQ(peak_flops("", "fp32"), 0);
}

TEST_F(CallbackTest, RuntimeEstimatorStretchesThePaceSoFar) {
  RuntimeEstimator estimator(1, "seconds");
  batch(estimator, 100.0);
  EXPECT_THAT(logged_.values, IsEmpty());
  for (int i = 0; i < 9; ++i) batch(estimator, 2.0);
  EXPECT_NEAR(logged_.values.at("time/remaining_estimate"), 60.0, 1e-9);
}

TEST_F(CallbackTest, RuntimeEstimatorCountsEvaluationsToCome) {
  RuntimeEstimator estimator(1, "seconds");
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i < 10; ++i) batch(estimator, 2.0);
    end_epoch(estimator);
    evaluation(estimator, epoch == 0 ? 50.0 : 5.0);
  }
  batch(estimator, 2.0);
  // The clock started after the first of 40 batches: two evaluations in 19 batches are 39 / 19 * 2 in 39.
  EXPECT_NEAR(logged_.values.at("time/remaining_estimate"), 19 * 2.0 + 5.0 * (39.0 / 19.0 * 2 - 2), 1e-9);
}

TEST_F(CallbackTest, RuntimeEstimatorIsInItsUnit) {
  RuntimeEstimator estimator(0, "hours");
  estimator.run_event(Event::kFitStart, state_, logged_);
  batch(estimator, 3600.0);
  EXPECT_NEAR(logged_.values.at("time/remaining_estimate"), 39.0, 1e-9);
}

TEST_F(CallbackTest, RuntimeEstimatorResumesWhereItWas) {
  RuntimeEstimator estimator(2, "seconds"), resumed(2, "seconds");
  for (int i = 0; i < 10; ++i) batch(estimator, 1.0 + i);
  end_epoch(estimator);
  evaluation(estimator, 3.0);
  resumed.restore(estimator.state());
  const Timestamp then = state_.timestamp;
  batch(estimator, 2.0);
  const auto wanted = logged_.values;
  EXPECT_THAT(wanted, Not(IsEmpty()));
  state_.timestamp = then;
  batch(resumed, 2.0);
  EXPECT_EQ(logged_.values, wanted);
}

TEST_F(CallbackTest, MemoryMonitorLogsWhatItIsReportedUnderTheNamesThatItIsReported) {
  const auto table = [](const char* figure) {
    Setting name(std::string("most_bytes"), "callbacks.0.memory_keys", {"test.toml", 7});
    return Setting(Setting::Table{{figure, name}}, "callbacks.0.memory_keys", {"test.toml", 7});
  };
  MemoryMonitor monitor(MemoryMonitor::keys_of(table("allocated_bytes.all.peak")));
  monitor.run_event(Event::kAfterTrainBatch, state_, logged_);
  EXPECT_THAT(logged_.values, UnorderedElementsAre(Pair("memory/most_gigabytes", testing::_)));
  EXPECT_THAT([&] { MemoryMonitor::keys_of(table("num_ooms")); },
              testing::ThrowsMessage<UserError>(
                  testing::AllOf(testing::HasSubstr("test.toml:7"), testing::HasSubstr("unknown figure"))));
}

TEST_F(CallbackTest, MemoryMonitorLogsTheMetersFigures) {
  constexpr int kSlot = 7;
  Meter::install();
  Meter::charge(kSlot, 3'000'000);
  Meter::reset_peak(kSlot);
  Meter::charge(kSlot, -1'000'000);
  state_.device.memory_slot = kSlot;
  MemoryMonitor monitor;
  monitor.run_event(Event::kAfterTrainBatch, state_, logged_);
  Meter::charge(kSlot, -2'000'000);
  EXPECT_THAT(logged_.values, UnorderedElementsAre(Pair("memory/current_allocated_mem", 0.002),
                                                   Pair("memory/peak_allocated_mem", 0.003)));
}

TEST_F(CallbackTest, FreeOutputsLetsGoOfThemAfterTheLoss) {
  FreeOutputs callback;
  state_.outputs = at::ones({4});
  callback.run_event(Event::kBeforeLoss, state_, logged_);
  EXPECT_FALSE(state_.outputs.empty());
  callback.run_event(Event::kAfterLoss, state_, logged_);
  EXPECT_TRUE(state_.outputs.empty());
}

}  // namespace
}  // namespace tutti
