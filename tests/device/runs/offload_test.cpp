// [sharding] offload on the test device: the bits of the CPU, and less of the device's memory.

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/recipe/section.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"
#include "training/optimizers/optimizer.h"
#include "training/optimizers/options.h"

namespace tutti {
namespace {

using testing::IsEmpty;

struct OffloadedRun {
  const char* name;
  std::string recipe;
  Sharded sharded = {.ranks = 1};
  bool nightly = false;
};

void PrintTo(const OffloadedRun& one, std::ostream* out) { *out << one.name; }

const std::string kOffload = "offload = ['optimizer', 'activations']\nactivation_checkpointing = true\n";

const std::vector<OffloadedRun>& offloaded_runs() {
  static const std::string gpt = kSmallGpt + steps(3) + "grad_accum = 2\n";
  static const std::string monitor = "[[callbacks]]\nkind = 'optimizer_monitor'\n";
  static const std::string half = "precision = 'amp_fp16'\n[precision]\ninit_scale = 1e12\n";
  static const std::vector<OffloadedRun> all{
      {"GptUnderFull", gpt, {"full", 2}},
      {"ResnetChannelsLast", kSmallResnet + steps(3) + "[[algorithms]]\nkind = 'channels_last'\n"},
      {"SkippedStepsUnderNone", kSmallGpt + steps(4) + half, {"none", 2}},
      {"MonitorUnderHybrid", gpt + monitor, {"hybrid", 4, "shard_size = 2\n"}},
      {"GptUnderOptimizer", gpt, {"optimizer", 2}, true},
      {"GptUnderGradients", gpt, {"gradients", 2}, true},
  };
  return all;
}

class OffloadOf : public DeviceRunTest, public testing::WithParamInterface<OffloadedRun> {};

DeviceRun offloaded(const OffloadedRun& one) {
  DeviceRun run{one.recipe, one.sharded};
  run.sharded.more += kOffload;
  return run;
}

TEST_P(OffloadOf, HasTheBitsOfTheCpu) {
  if (GetParam().nightly && !is_nightly()) GTEST_SKIP() << "by night";
  const ShardedRun plain = DeviceRun{GetParam().recipe, GetParam().sharded}.run(Where::kCpu);
  for (const Where where : {Where::kLate, Where::kEager}) {
    const ShardedRun run = offloaded(GetParam()).run(where);
    EXPECT_EQ(run.digest, plain.digest);
    EXPECT_EQ(run.metrics, plain.metrics);
  }
}

INSTANTIATE_TEST_SUITE_P(Of, OffloadOf, testing::ValuesIn(offloaded_runs()),
                         [](const auto& info) { return info.param.name; });

class Offload : public DeviceRunTest {};

TEST_F(Offload, LeavesCheckpointsFromWhichOthersResume) {
  const Scratch folder;
  const auto run = [&](int count, Where where, const std::string& to, const std::string& from = "") {
    const std::string load = from.empty() ? "" : "load_path = '" + folder.path(from) + "'\n";
    const OffloadedRun one{
        "", kSmallGpt + steps(count) + "[checkpoint]\ninterval = '2ba'\n" + load, {"full", 2}};
    const DeviceRun plain{one.recipe, one.sharded};
    return (where == Where::kCpu ? plain : offloaded(one)).run(where, folder.path(to)).digest;
  };
  run(2, Where::kCpu, "begun_on_cpu");
  run(2, Where::kLate, "begun_offloaded");
  const std::string resumed = run(4, Where::kCpu, "on_cpu", "begun_on_cpu");
  EXPECT_EQ(run(4, Where::kLate, "ended_offloaded", "begun_on_cpu"), resumed);
  EXPECT_EQ(run(4, Where::kCpu, "ended_on_cpu", "begun_offloaded"), resumed);
}

// Parameters of 120 MiB, in parts of kStagedBytes at most: two of 24 MiB together, then one of 72 MiB.
TEST_F(Offload, OfTheOptimizersStateKeepsThePartOfAnUpdateOnTheDevice) {
  on(Where::kLate);
  const c10::Device where = test_device::device();
  const std::vector<int64_t> mib = {24, 24, 72};
  const auto train = [&](const std::string& kind, bool on_host, int64_t& bytes) {
    std::vector<ParamView> views;
    for (const int64_t size : mib) {
      const at::Tensor values = at::arange(size << 18, at::kFloat).remainder_(1000).mul_(0.001);
      views.push_back(whole_view("p" + std::to_string(views.size()), values.to(where)));
      views.back().grad = views.back().tensor.sub(0.5);
      views.back().state_on_host = on_host;
    }
    const int64_t before = test_device::used_bytes(0);
    const auto optimizer = make_optimizer(smallest_section(optimizer_catalog(), kind), views);
    bytes = test_device::used_bytes(0) - before;
    const at::Tensor scale = at::full({}, 2.0, at::device(where));
    const at::Tensor counts = at::zeros({}, at::device(where)), skips = at::ones({}, at::device(where));
    optimizer->step(scale, counts);
    optimizer->step(scale, skips);
    optimizer->take_back();
    optimizer->step(scale, counts);
    std::vector<at::Tensor> found;
    for (const OptimizerState& state : optimizer->state()) found.push_back(state.tensor.cpu().clone());
    for (const ParamView& view : views) found.push_back(view.tensor.cpu());
    return found;
  };
  for (const char* kind : {"adamw", "decoupled_adamw"}) {
    int64_t there = 0, here = 0;
    const auto plain = train(kind, false, there), staged = train(kind, true, here);
    ASSERT_EQ(plain.size(), staged.size());
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(plain[i].equal(staged[i])) << kind << i;
    EXPECT_NEAR(static_cast<double>(here) / static_cast<double>(there), 72.0 / 120, 1e-3) << kind;
  }
  EXPECT_THAT(test_device::take_findings(), IsEmpty());
}

}  // namespace
}  // namespace tutti
