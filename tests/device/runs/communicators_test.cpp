// Trainings whose sums and gathers go through communicators of the test device, by NCCL's calls.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <string>
#include <vector>

#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"

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
  for (const Where where : {Where::kEager, Where::kLate}) {
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

INSTANTIATE_TEST_SUITE_P(
    Of, CommunicatorRuns,
    testing::Values(JoinedRun{"None", {.ranks = 2}, kSmallMlp + steps(4)},
                    JoinedRun{"Optimizer", {"optimizer", 2}, kSmallMlp + steps(4)},
                    JoinedRun{"Gradients", {"gradients", 2}, kSmallMlp + steps(4)},
                    JoinedRun{"Full", {"full", 2}, kSmallMlp + steps(4)},
                    JoinedRun{"Full4", {"full", 4}, kSmallMlp + steps(4)},
                    JoinedRun{"Hybrid", {"hybrid", 4, "shard_size = 2\n"}, kSmallMlp + steps(4)}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tutti
