// Trainings whose sums and gathers go through communicators of the test device, by NCCL's calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/runtime/nightly.h"

namespace tutti {
namespace {

using testing::Each;
using testing::Eq;
using testing::IsEmpty;
using testing::Not;

struct JoinedRun {
  const char* name;
  Sharded sharded;
  std::string recipe;  // [train] is the last section
};

void PrintTo(const JoinedRun& one, std::ostream* out) { *out << one.name; }

// Without sizes: parts of replicas are as large as their ranks' shares.
std::map<int, std::vector<std::string>> calls_of_ranks() {
  static const std::regex size(" of [0-9]+");
  auto calls = test_device::take_communicator_calls();
  for (auto& [rank, of_rank] : calls)
    for (std::string& call : of_rank) call = std::regex_replace(call, size, "");
  return calls;
}

class CommunicatorRuns : public DeviceRunTest, public testing::WithParamInterface<JoinedRun> {};

TEST_P(CommunicatorRuns, HaveTheBitsOfTheCpu) {
  const DeviceRun staged{GetParam().recipe, GetParam().sharded};
  DeviceRun run = staged;
  const std::string section = "[collectives]\n";
  run.recipe = replaced(run.recipe, section, section + "backend = 'nccl'\n");
  const ShardedRun cpu = staged.run(Where::kCpu);
  const bool is_short = GetParam().recipe.find("kind = 'gpt'") == std::string::npos;
  for (const Where where : {Where::kLate, Where::kEager}) {
    if (where == Where::kEager && !is_short && !is_nightly()) continue;
    test_device::take_communicator_calls();
    const ShardedRun device = run.run(where);
    EXPECT_EQ(device.digest, cpu.digest);
    EXPECT_EQ(device.metrics, cpu.metrics);
    const auto calls = calls_of_ranks();
    ASSERT_EQ(calls.size(), static_cast<std::size_t>(GetParam().sharded.ranks));
    EXPECT_THAT(calls.at(0), Not(IsEmpty()));
    for (const auto& [rank, of_rank] : calls) EXPECT_EQ(of_rank, calls.at(0)) << "rank " << rank;
  }
}

std::vector<JoinedRun> joined_runs() {
  const std::string gpt =
      replaced(kSmallGpt, "[model]\n", "[collectives]\nbucket_mb = 0.002\n[model]\n") + steps(3);
  const std::string mlp = kSmallMlp + steps(4), parts = "grad_accum = 3\n",
                    brain = "precision = 'amp_bf16'\n";
  // The first layers are frozen on the way.
  const std::string freezing =
      mlp + "[[algorithms]]\nkind = 'layer_freezing'\nfreeze_start = 0.2\nfreeze_level = 0.9\n";
  const std::string closures = mlp + "[[algorithms]]\nkind = 'sam'\nrho = 0.05\ninterval = 1\n";
  const Sharded hybrid{"hybrid", 4, "shard_size = 2\n"};
  return {{"None", {.ranks = 2}, mlp},
          {"NoneOfGpt", {.ranks = 4}, gpt + parts},
          {"Optimizer", {"optimizer", 2}, mlp},
          {"OptimizerOfGpt", {"optimizer", 4}, gpt + parts},
          {"OptimizerWithFrozenLayers", {"optimizer", 2}, freezing},
          {"Gradients", {"gradients", 2}, mlp},
          {"GradientsOfGpt", {"gradients", 4}, gpt + brain},
          {"GradientsWithFrozenLayers", {"gradients", 2}, freezing},
          {"Full", {"full", 2}, mlp},
          {"FullOfGpt", {"full", 4}, gpt + parts},
          {"FullInBfloat16", {"full", 2}, gpt + brain},
          {"FullWithoutPrefetch", {"full", 2, "prefetch = false\n"}, gpt},
          {"FullThatKeepsUnits", {"full", 2, "reshard_after_forward = false\n"}, gpt + parts},
          {"FullWithActivationCheckpointing", {"full", 2, "activation_checkpointing = ['GptBlock']\n"}, gpt},
          {"FullWithFrozenLayers", {"full", 2}, freezing},
          {"FullWithClosures", {"full", 2}, closures},
          {"Hybrid", hybrid, mlp},
          {"HybridOfGpt", hybrid, gpt + brain + parts},
          {"HybridWithFrozenLayers", hybrid, freezing}};
}

INSTANTIATE_TEST_SUITE_P(Of, CommunicatorRuns, testing::ValuesIn(joined_runs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tutti
