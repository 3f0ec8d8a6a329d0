// How often the host waits for the device in a step.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/runtime/nightly.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

using Counts = std::map<std::string, double>;  // a step of a rank, by cause

struct HostWaits {
  Counts all, stalls;
};

Counts difference(const std::map<std::string, int64_t>& more, const std::map<std::string, int64_t>& fewer,
                  double divisor) {
  Counts found;
  for (const auto& [cause, count] : more) {
    const auto other = fewer.find(cause);
    const double rest = static_cast<double>(count - (other == fewer.end() ? 0 : other->second));
    if (rest != 0) found[cause] = rest / divisor;
  }
  return found;
}

// Of steps within an epoch, in which nothing is due: no evaluation, no checkpoint.
HostWaits of_a_steady_step(const std::string& recipe, const Sharded& sharded, int few) {
  const int many_steps = few + 2;
  std::map<std::string, int64_t> waits[2], stalls[2];
  for (const bool many : {false, true}) {
    test_device::reset_counters();
    DeviceRun{recipe + steps(many ? many_steps : few), sharded}.run(Where::kLate);
    waits[many] = test_device::host_waits();
    stalls[many] = test_device::stalls();
  }
  const double steps = (many_steps - few) * sharded.ranks;
  return {difference(waits[1], waits[0], steps), difference(stalls[1], stalls[0], steps)};
}

struct CountedRun {
  const char* name;
  std::string recipe;
  Sharded sharded = {.ranks = 1};
  bool nightly = false;
  int before = 2;  // steps
};

void PrintTo(const CountedRun& one, std::ostream* out) { *out << one.name; }

const std::string kNoEvaluation = "eval_interval = '0ba'\n";

std::string quiet(const std::string& recipe) {
  return replaced(recipe, "eval_interval = '3ba'\n", kNoEvaluation);
}

const std::vector<CountedRun>& counted_runs() {
  static const std::string half = "precision = 'amp_fp16'\n";
  static const std::string mlp = quiet(kSmallMlp), resnet = quiet(kSmallResnet);
  static const std::string joined =
      replaced(kSmallGpt, "[model]\n", "[collectives]\nbackend = 'nccl'\n[model]\n") + "grad_accum = 2\n";
  static const std::vector<CountedRun> all{
      {"Mlp", mlp},
      {"MlpWithCallbacks",
       replaced(mlp, "[optimizer]", "[[callbacks]]\nkind = 'speed_monitor'\n[optimizer]")},
      {"GptWithAlibi", replaced(kSmallGpt, "[optimizer]",
                                "[[algorithms]]\nkind = 'alibi'\nmax_sequence_length = 8\n[optimizer]")},
      {"GptByGraphs", kSmallGpt + "cuda_graphs = true\n", {.ranks = 1}, false, 5},
      {"MlpOnTwoRanks", mlp, {.ranks = 2}},
      {"MlpInFloat16OnTwoRanks", mlp + half, {.ranks = 2}},
      {"GptInMicrobatches", kSmallGpt + "grad_accum = 3\n"},
      {"ResnetOnTwoRanks", resnet, {.ranks = 2}},
      {"GptUnderFull", kSmallGpt + "grad_accum = 2\n", {"full"}},
      {"GptUnderOptimizer", kSmallGpt, {"optimizer"}, true},
      {"GptUnderGradients", kSmallGpt + "grad_accum = 2\n", {"gradients"}, true},
      {"GptUnderHybrid", kSmallGpt, {"hybrid", 4, "shard_size = 2\n"}, true},
      {"GptUnderFullByNccl", joined, {"full"}},
      {"GptUnderOptimizerByNccl", joined, {"optimizer"}, true},
      {"GptUnderHybridByNccl", joined, {"hybrid", 4, "shard_size = 2\n"}, true},
  };
  return all;
}

class HostWaitsOf : public DeviceRunTest, public testing::WithParamInterface<CountedRun> {};

TEST_P(HostWaitsOf, ASteadyStepAreOne) {
  if (GetParam().nightly && !is_nightly()) GTEST_SKIP() << "by night";
  const HostWaits found = of_a_steady_step(GetParam().recipe, GetParam().sharded, GetParam().before);
  EXPECT_THAT(found.all, ElementsAre(Pair("event", 1)));
  EXPECT_THAT(found.stalls, IsEmpty());
}

class HostCopies : public DeviceRunTest {};

TEST_F(HostCopies, AreNotOfMasks) {
  const auto copies = [](const std::string& recipe) {
    test_device::reset_counters();
    DeviceRun{recipe + steps(3)}.run(Where::kLate);
    return test_device::counters().copies_to_device;
  };
  EXPECT_EQ(copies(kSmallGpt), copies(replaced(kSmallGpt, "dropout = 0.1\n", "")));
}

std::vector<CountedRun> counted_losses() {
  static const auto recipes = small_mlps_by_loss();
  std::vector<CountedRun> all;
  for (const auto& [loss, recipe] : recipes)
    all.push_back({loss.c_str(), quiet(recipe) + "grad_accum = 2\n"});
  return all;
}

INSTANTIATE_TEST_SUITE_P(OfTheLoss, HostWaitsOf, testing::ValuesIn(counted_losses()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Of, HostWaitsOf, testing::ValuesIn(counted_runs()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tutti
