// Runs whose microbatches are graphs of the device ([train] cuda_graphs).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/actors/compute/hungry_model.h"
#include "tests/actors/memory_world.h"
#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/runtime/nightly.h"

namespace tutti {
namespace {

using testing::IsEmpty;

constexpr int kRecordedAfter = 3;  // microbatches that are alike

struct GraphedRun {
  const char* name;
  std::string recipe;
  int launches = 0;
  std::string sharding = {};
};

void PrintTo(const GraphedRun& one, std::ostream* out) { *out << one.name; }

const std::string kGraphs = "cuda_graphs = true\n";

std::string with_algorithm(const std::string& recipe, const std::string& algorithm) {
  return recipe + "[[algorithms]]\n" + algorithm;
}

const std::vector<GraphedRun>& graphed_runs() {
  static const std::string half = "precision = 'amp_fp16'\n", brain = "precision = 'amp_bf16'\n";
  static const std::string mlp = kSmallMlp + steps(7) + kGraphs, gpt = kSmallGpt + steps(6) + kGraphs,
                           resnet = kSmallResnet + steps(6) + kGraphs;
  static const std::string uneven =
      replaced(kSmallMlp, "samples = 100", "samples = 90\ndrop_last = false") + steps(9) + kGraphs;
  static const std::vector<GraphedRun> all{
      {"Mlp", mlp, 4},
      {"MlpInFloat16", mlp + half + "[precision]\ngrowth_interval = 2\n", 4},
      {"Gpt", gpt, 3},
      {"GptInMicrobatches", gpt + "grad_accum = 2\n", 9},
      {"GptInBfloat16", gpt + brain, 3},
      {"GptWithActivationCheckpointing", gpt, 3, "activation_checkpointing = ['GptBlock']\n"},
      {"Resnet", resnet, 3},
      {"ResnetInMicrobatchesOfBfloat16", resnet + brain + "grad_accum = 2\n", 9},
      {"GradientClipping",
       with_algorithm(gpt, "kind = 'gradient_clipping'\nclipping_type = 'norm'\nclipping_threshold = 0.1\n"),
       3},
      {"Sam", with_algorithm(mlp, "kind = 'sam'\ninterval = 2\n"), 7},
      {"SmallerBatchesAtTheEndOfEpochs", uneven, 5},
      {"Alibi", with_algorithm(gpt, "kind = 'alibi'\nmax_sequence_length = 8\n"), 3},
      {"HostDraws", with_algorithm(resnet, "kind = 'stochastic_depth'\ntarget_layer_name = 'BasicBlock'\n"),
       0},
      {"ListenersInMicrobatches", with_algorithm(mlp, "kind = 'label_smoothing'\nsmoothing = 0.1\n"), 0},
      {"Callbacks", mlp + "[[callbacks]]\nkind = 'speed_monitor'\n", 3},
  };
  return all;
}

class GraphsOf : public DeviceRunTest, public testing::WithParamInterface<GraphedRun> {};

TEST_P(GraphsOf, MicrobatchesHaveTheBitsOfTheCpu) {
  for (const Where where : {Where::kEager, Where::kLate}) {
    test_device::reset_counters();
    expect_bits_of_the_cpu({GetParam().recipe, {"none", 1, GetParam().sharding}}, where);
    EXPECT_EQ(test_device::counters().graphs, GetParam().launches);
  }
}

std::vector<GraphedRun> graphed_losses() {
  static const auto recipes = small_mlps_by_loss();
  std::vector<GraphedRun> all;
  for (const auto& [loss, recipe] : recipes) all.push_back({loss.c_str(), recipe + steps(5) + kGraphs, 2});
  return all;
}

INSTANTIATE_TEST_SUITE_P(OfTheLoss, GraphsOf, testing::ValuesIn(graphed_losses()),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(All, GraphsOf, testing::ValuesIn(graphed_runs()),
                         [](const auto& info) { return info.param.name; });

class Graphs : public DeviceRunTest {};

TEST_F(Graphs, MemoryMayRunOutWhileTheyAreRecordedAndLater) {
  const std::string recipe = replaced(mlp(6) + on(Where::kLate), "[train]\n", "[train]\n" + kGraphs);
  MemoryWorld world{.recipe = recipe, .ranks = 1};
  const auto clean = world.run("\"auto\"");
  ASSERT_EQ(clean.error, "");
  bool has_run_out_recording = false;
  for (int64_t ordinal = 1; ordinal <= clean.allocations[0]; ordinal += is_nightly() ? 1 : 5) {
    world.failures = {{0, {ordinal}}};
    const auto outcome = world.run("\"auto\"");
    ASSERT_EQ(outcome.error, "") << "allocation " << ordinal;
    EXPECT_TRUE(outcome.has_warning("ran out of memory")) << "allocation " << ordinal;
    EXPECT_FALSE(outcome.has_warning("still held")) << "allocation " << ordinal;
    has_run_out_recording |= outcome.has_warning("while a graph was recorded");
    world.failures.clear();
    const auto by_hand = world.run(outcome.schedule());
    EXPECT_EQ(outcome.losses, by_hand.losses) << "allocation " << ordinal;
    EXPECT_TRUE(outcome.weights == by_hand.weights) << "allocation " << ordinal;
    EXPECT_THAT(test_device::take_findings(), IsEmpty()) << "allocation " << ordinal;
  }
  EXPECT_TRUE(has_run_out_recording);
}

TEST_F(Graphs, MemoryOfThoseForOtherMicrobatchesIsFree) {
  const std::string wide = replaced(replaced(kSmallMlp, "[33, 17]", "[256, 256, 256]"),
                                    "samples = 100\nbatch_size = 20", "samples = 400\nbatch_size = 200") +
                           steps(10) + kGraphs;
  const DeviceRun halves{wide + "grad_accum = [[0, 2], [5, 1]]\n"}, whole{wide};
  const double all = whole.run(Where::kEager).peak_mb;
  EXPECT_GT(all, 3);
  EXPECT_NEAR(halves.run(Where::kEager).peak_mb, all, 0.1 * all);
}

}  // namespace
}  // namespace tutti
