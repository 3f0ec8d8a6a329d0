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

const std::string kOffload = "offload = ['optimizer', 'activations']\nactivation_checkpointing = true\n";
const std::string kParametersToo = "offload = ['parameters']\n";

struct OffloadedRun {
  const char* name;
  std::string recipe;
  Sharded sharded = {.ranks = 1};
  bool nightly = false;
  std::string offload = kOffload;
};

void PrintTo(const OffloadedRun& one, std::ostream* out) { *out << one.name; }

const std::vector<OffloadedRun>& offloaded_runs() {
  static const std::string gpt = kSmallGpt + steps(3) + "grad_accum = 2\n";
  static const std::string monitor = "[[callbacks]]\nkind = 'optimizer_monitor'\n";
  static const std::string overflows = "precision = 'amp_fp16'\n[precision]\ninit_scale = 1e12\n";
  static const std::string averages = "[[algorithms]]\nkind = 'ema'\nhalf_life = '2ba'\n";
  static const std::string clips =
      "[[algorithms]]\nkind = 'gradient_clipping'\nclipping_type = 'adaptive'\nclipping_threshold = 0.01\n";
  static const Sharded full{"full", 2}, hybrid{"hybrid", 4, "shard_size = 2\n"};
  static const std::vector<OffloadedRun> all{
      {"GptUnderFull", gpt, full},
      {"ResnetChannelsLast", kSmallResnet + steps(3) + "[[algorithms]]\nkind = 'channels_last'\n"},
      {"SkippedStepsUnderNone", kSmallGpt + steps(4) + overflows, {"none", 2}},
      {"MonitorUnderHybrid", gpt + monitor, hybrid},
      {"GptUnderOptimizer", gpt, {"optimizer", 2}, true},
      {"GptUnderGradients", gpt, {"gradients", 2}, true},
      {"ParametersUnderFull", gpt + averages + clips + monitor, full, false, kParametersToo},
      {"ParametersIn16BitsUnderHybrid", gpt + "precision = 'amp_bf16'\n", hybrid, false, kParametersToo},
      {"ParametersByCommunicators", gpt, full, false, kParametersToo + "[collectives]\nbackend = 'nccl'\n"},
      {"ParametersOfSkippedSteps", kSmallGpt + steps(4) + overflows, full, true, kParametersToo},
  };
  return all;
}

class OffloadOf : public DeviceRunTest, public testing::WithParamInterface<OffloadedRun> {};

DeviceRun offloaded(const OffloadedRun& one) {
  DeviceRun run{one.recipe, one.sharded};
  run.sharded.more += one.offload;
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
  for (const std::string& what : {kOffload, kParametersToo}) {
    const Scratch folder;
    const auto run = [&](int count, Where where, const std::string& to, const std::string& from = "") {
      const std::string load = from.empty() ? "" : "load_path = '" + folder.path(from) + "'\n";
      const OffloadedRun one{
          "", kSmallGpt + steps(count) + "[checkpoint]\ninterval = '2ba'\n" + load, {"full", 2}, false, what};
      const DeviceRun plain{one.recipe, one.sharded};
      return (where == Where::kCpu ? plain : offloaded(one)).run(where, folder.path(to)).digest;
    };
    run(2, Where::kCpu, "begun_on_cpu");
    run(2, Where::kLate, "begun_offloaded");
    const std::string resumed = run(4, Where::kCpu, "on_cpu", "begun_on_cpu");
    EXPECT_EQ(run(4, Where::kLate, "ended_offloaded", "begun_on_cpu"), resumed);
    EXPECT_EQ(run(4, Where::kCpu, "ended_on_cpu", "begun_offloaded"), resumed);
  }
}

TEST_F(Offload, OfParametersIsRefusedWhereAnAlgorithmChangesThem) {
  const DeviceRun sam{kSmallMlp + steps(2) + "[[algorithms]]\nkind = 'sam'\n", {"full", 2, kParametersToo}};
  EXPECT_THAT(message_of<UserError>([&] { sam.run(Where::kEager); }),
              testing::HasSubstr(") is SAM, which changes parameters on the device; expected \"optimizer\""));
}

// Parameters of 120 MiB, in parts of kStagedBytes at most: two of 24 MiB together, then one of 72 MiB.
TEST_F(Offload, OfTheOptimizersStateKeepsThePartOfAnUpdateOnTheDevice) {
  on(Where::kLate);
  const c10::Device where = test_device::device();
  const std::vector<int64_t> mib = {24, 24, 72};
  enum class Keeps { kNothing, kState, kParameters };
  const auto train = [&](const std::string& kind, Keeps host, int64_t& bytes) {
    std::vector<ParamView> views;
    for (const int64_t size : mib) {
      const at::Tensor values = at::arange(size << 18, at::kFloat).remainder_(1000).mul_(0.001);
      const bool moves = host == Keeps::kParameters;
      views.push_back(
          whole_view("p" + std::to_string(views.size()), moves ? values.pin_memory() : values.to(where)));
      views.back().grad = values.to(where).sub_(0.5);
      if (host != Keeps::kNothing) views.back().offloaded_from = where;
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
    int64_t there = 0;
    const auto plain = train(kind, Keeps::kNothing, there);
    for (const auto& [what, parts] : {std::pair(Keeps::kState, 2), {Keeps::kParameters, 3}}) {
      int64_t here = 0;
      const auto staged = train(kind, what, here);
      ASSERT_EQ(plain.size(), staged.size());
      for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_TRUE(plain[i].equal(staged[i])) << kind << i;
      EXPECT_NEAR(static_cast<double>(here) / static_cast<double>(there), 72.0 * parts / (120 * 2), 1e-3);
    }
  }
  EXPECT_THAT(test_device::take_findings(), IsEmpty());
}

}  // namespace
}  // namespace tutti
