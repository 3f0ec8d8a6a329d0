// Sharding strategies, checkpoints and journals on the test device.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "actors/checkpoint_copies.h"
#include "analysis/run_diff.h"
#include "commands/local_train.h"
#include "sim/replay/replay.h"
#include "tensors/memory/meter.h"
#include "tests/actors/sleeping_world.h"
#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<Sharded> strategies() {
  std::vector<Sharded> all;
  for (const int ranks : {1, 2, 4})
    for (const char* strategy : {"none", "optimizer", "gradients", "full"}) all.push_back({strategy, ranks});
  all.push_back({"hybrid", 4, "shard_size = 2\n"});
  return all;
}

std::string name_of(const Sharded& sharded) { return sharded.strategy + "_" + std::to_string(sharded.ranks); }

class StrategyOnTheDevice : public DeviceRunTest, public testing::WithParamInterface<Sharded> {};

// With a checkpoint, from which a run on the other device continues.
TEST_P(StrategyOnTheDevice, ResumesOnEitherDeviceToTheBitsOfTheCpu) {
  const Scratch folder;
  const auto run = [&](int count, Where where, const std::string& to, const std::string& from = "") {
    const std::string load = from.empty() ? "" : "load_path = '" + folder.path(from) + "'\n";
    return DeviceRun{kSmallMlp + steps(count) + "[checkpoint]\ninterval = '2ba'\n" + load, GetParam()}.run(
        where, folder.path(to));
  };
  const ShardedRun whole = run(4, Where::kCpu, "whole");
  const ShardedRun on_device = run(4, Where::kLate, "on_device");
  EXPECT_EQ(on_device.digest, whole.digest);
  EXPECT_EQ(on_device.metrics, whole.metrics);
  run(2, Where::kCpu, "begun_on_cpu");
  run(2, Where::kLate, "begun_on_device");
  const std::string resumed = run(4, Where::kCpu, "on_cpu", "begun_on_cpu").digest;
  EXPECT_EQ(run(4, Where::kLate, "ended_on_device", "begun_on_cpu").digest, resumed);
  EXPECT_EQ(run(4, Where::kCpu, "ended_on_cpu", "begun_on_device").digest, resumed);
}

TEST_P(StrategyOnTheDevice, HasTheBitsOfTheCpuOnGpt) {
  const bool by_day = GetParam().ranks > 1 && GetParam().strategy != "none";
  if (!by_day && !is_nightly()) GTEST_SKIP() << "by night";
  expect_bits_of_the_cpu({kSmallGpt + steps(3) + "precision = 'amp_bf16'\ngrad_accum = 2\n", GetParam()});
  if (!is_nightly()) return;
  expect_bits_of_the_cpu({kSmallGpt + steps(3), GetParam()}, Where::kEager);
  expect_bits_of_the_cpu({kSmallResnet + steps(3), GetParam()});
}

INSTANTIATE_TEST_SUITE_P(Of, StrategyOnTheDevice, testing::ValuesIn(strategies()),
                         [](const auto& info) { return name_of(info.param); });

class CopiesOfCheckpoints : public DeviceRunTest {};

TEST_F(CopiesOfCheckpoints, PassThroughARingThatIsSmallerThanTheyAre) {
  on(Where::kLate);
  const Device device{test_device::device()};
  device.use();
  at::manual_seed(1);
  std::vector<at::Tensor> values;
  for (const int64_t size : {1, 1000, 77, 3, 5000, 400, 0, 64, 2000})
    values.push_back(at::randint(-9, 9, {size}, size % 2 ? at::kFloat : at::kLong));
  values.push_back(at::randn({4, 6, 5, 5}).contiguous(at::MemoryFormat::ChannelsLast));
  for (const int64_t ring : {512, 4096, 1 << 20}) {
    CheckpointCopies copies(device, ring);
    for (int round = 0; round < 2; ++round) {
      std::vector<CheckpointPiece> pieces;
      for (const at::Tensor& one : values) {
        pieces.push_back({.name = std::to_string(pieces.size())});
        pieces.back().tensor = (one + round).to(device.where);
      }
      std::vector<at::Tensor> on_device;
      for (const auto& piece : pieces) on_device.push_back(piece.tensor);
      copies.reserve(pieces);
      copies.copy(pieces).wait();
      for (const at::Tensor& one : on_device) at::Tensor(one).zero_();
      copies.finish();
      for (std::size_t i = 0; i < values.size(); ++i)
        EXPECT_TRUE(pieces[i].tensor.equal(values[i] + round)) << i << " of " << ring;
    }
  }
  EXPECT_THAT(test_device::take_findings(), IsEmpty());
}

class ReplayOnTheDevice : public DeviceRunTest {};

TEST_F(ReplayOnTheDevice, ComesToTheDigestsOfTheRunWhichAreTheCpus) {
  for (const char* strategy : {"none", "full"}) {
    const Scratch folder;
    const auto record = [&](Where where, const std::string& name) {
      LocalRunOptions options;
      options.ranks = 2;
      options.run_dir = folder.path(name);
      options.live = options.quiet = true;
      train_in_one_process(recipe_of(kSmallMlp + steps(6) + on(where) + "[checkpoint]\ninterval = '2ba'\n" +
                                     "[sharding]\nstrategy = '" + strategy + "'\n"),
                           options);
      return options.run_dir;
    };
    const std::string cpu = record(Where::kCpu, "cpu"), device = record(Where::kLate, "device");
    const ReplayResult replayed = replay({.run_dir = device});
    EXPECT_TRUE(replayed.same);
    EXPECT_THAT(replayed.text, HasSubstr("all equal"));
    const RunDiff journals = diff_runs(cpu, device);
    EXPECT_TRUE(journals.same) << journals.text;
    EXPECT_THAT(test_device::take_findings(), IsEmpty());
  }
}

struct RecordedRunOnTheDevice {
  const char* name;
  std::string recipe;
  int ranks = 2;
  std::vector<int64_t> failures = {};  // allocations of rank 0
  Where where = Where::kLate;
};

class ReplayOnTheCpu : public DeviceRunTest, public testing::WithParamInterface<RecordedRunOnTheDevice> {};

void PrintTo(const RecordedRunOnTheDevice& one, std::ostream* out) { *out << one.name; }

const std::vector<RecordedRunOnTheDevice>& recorded_runs() {
  static const std::string sharded = "[sharding]\nstrategy = ";
  static const std::string joined =
      replaced(kSmallMlp, "[collectives]\n", "[collectives]\nbackend = 'nccl'\n");
  static const std::string halves = "grad_accum = 'auto'\n";
  static const std::string fp16 = "precision = 'amp_fp16'\n[precision]\ninit_scale = 1e12\n";
  static const std::vector<RecordedRunOnTheDevice> all{
      {"OneRank", kSmallMlp + steps(4), 1},
      {"None", kSmallMlp + steps(4)},
      {"Optimizer", kSmallMlp + steps(4) + sharded + "'optimizer'\n"},
      {"Full", kSmallGpt + steps(3) + "grad_accum = 2\n" + sharded + "'full'\n"},
      {"Hybrid", kSmallMlp + steps(4) + sharded + "'hybrid'\nshard_size = 2\n", 4},
      {"Clipped", kSmallMlp + steps(4) +
                      "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = 'norm'\n" +
                      "clipping_threshold = 0.1\n"},
      {"SkippedSteps", kSmallMlp + steps(4) + fp16},
      {"OutOfMemoryInForward", kSmallMlp + halves + steps(3), 2, {4}},
      {"OutOfMemoryInBackward", kSmallMlp + halves + steps(3), 2, {45}},
      {"OutOfMemoryByCommunicators", joined + halves + steps(3), 2, {45}, Where::kEager},
      {"OutOfMemoryUnderFull", kSmallGpt + halves + steps(3) + sharded + "'full'\n", 2, {300, 900}},
  };
  return all;
}

TEST_P(ReplayOnTheCpu, SaysWhatRanksOnTheDeviceHaveSaid) {
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = GetParam().ranks;
  options.run_dir = folder.path("run");
  options.live = options.quiet = true;
  const Setting recipe =
      recipe_of(GetParam().recipe + on(GetParam().where) + "[checkpoint]\ninterval = '2ba'\n");
  Meter::fail_at(0, GetParam().failures);
  train_in_one_process(recipe, options);
  EXPECT_EQ(Meter::failures_left(0), 0);
  const int64_t kernels = test_device::counters().kernels;
  const ReplayResult replayed = replay({.run_dir = options.run_dir, .on_cpu = true});
  EXPECT_EQ(test_device::counters().kernels, kernels);
  EXPECT_TRUE(replayed.same);
  EXPECT_THAT(replayed.text, AllOf(HasSubstr(" losses, all equal to a tolerance"),
                                   HasSubstr("the run computed on test device, this replay on the CPU")));
}

INSTANTIATE_TEST_SUITE_P(Of, ReplayOnTheCpu, testing::ValuesIn(recorded_runs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tutti
