// Simulated faults, and memory that runs out, on the test device.

#include <ATen/ops/empty.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "recipe/toml_reader.h"
#include "sim/simulate/simulation.h"
#include "tensors/memory/meter.h"
#include "tests/actors/compute/hungry_model.h"
#include "tests/actors/memory_world.h"
#include "tests/device/runs/device_run.h"
#include "tests/device/test_device.h"
#include "tests/runtime/nightly.h"
#include "tests/sim/small_job.h"

namespace tutti {
namespace {

using testing::IsEmpty;

class FaultsOnTheDevice : public DeviceRunTest {};

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

Simulation simulation_of(const std::string& sharding, const std::string& plan, int ranks, Where where,
                         const std::string& backend = "auto") {
  const std::string shards = sharding == "hybrid" ? "shard_size = 2\n" : "";
  return {small_job("[sharding]\nstrategy = '" + sharding + "'\n" + shards + "[collectives]\nbackend = '" +
                    (where == Where::kCpu ? "auto" : backend) + "'\n" + on(where)),
          ranks, make_fault_plan(read_recipe(TUTTI_SOURCE_DIR "/examples/faults/" + plan + ".toml"), ranks)};
}

// Among them ranks that are killed and memory that runs out.
void simulate_all_faults(const std::string& sharding, int ranks, const std::string& backend, uint64_t seeds) {
  const Simulation simulation = simulation_of(sharding, "all", ranks, Where::kLate, backend);
  const uint64_t weights = simulation_of(sharding, "all", ranks, Where::kCpu).fault_free().weights;
  EXPECT_EQ(simulation.fault_free().weights, weights) << "other bits than the CPU's";
  on(Where::kLate);
  for (uint64_t seed = 0; seed < (is_nightly() ? 100 : seeds); ++seed) {
    const SeedResult result = simulation.run(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.summary);
    EXPECT_THAT(test_device::take_findings(), IsEmpty());
  }
}

TEST_F(FaultsOnTheDevice, BreakNoInvariantAndNoOrder) {
  for (const char* sharding : {"none", "full"}) simulate_all_faults(sharding, 3, "auto", 4);
}

TEST_F(FaultsOnTheDevice, BreakNoInvariantWhereCommunicatorsJoinRanks) {
  simulate_all_faults("none", 3, "nccl", 2);
  simulate_all_faults("full", 3, "nccl", 2);
  simulate_all_faults("hybrid", 4, "nccl", 2);
}

TEST_F(FaultsOnTheDevice, OfMemoryComeWithTheDevicesAllocations) {
  constexpr int kRanks = 2;
  const Simulation simulation = simulation_of("none", "out_of_memory", kRanks, Where::kLate);
  int64_t failures = 0;
  for (uint64_t seed = 0; seed < 6; ++seed) {
    const SeedResult result = simulation.run_twice(seed);
    EXPECT_THAT(result.findings, IsEmpty()) << "seed " << seed << "\n" << joined(result.summary);
    for (const auto& [label, count] : result.faults) failures += count;
  }
  EXPECT_GT(failures, 0);
  EXPECT_THAT(test_device::take_findings(), IsEmpty());
}

// A model's step, at each `stride`th allocation of which memory runs out.
void sweep(const std::string& recipe, int ranks, int64_t stride) {
  // Of the first attempt at a sharded step, a block of the smallest size stays.
  const bool returns_all = recipe.find("strategy = ") == std::string::npos;
  MemoryWorld world{.recipe = recipe + on(Where::kLate), .ranks = ranks};
  const auto clean = world.run("\"auto\"");
  ASSERT_EQ(clean.error, "");
  ASSERT_EQ(clean.schedule(), "[[0, 1]]");
  ASSERT_GT(clean.allocations[0], 20);
  std::map<std::string, MemoryWorld::Outcome> by_hand;
  for (int64_t ordinal = 1; ordinal <= clean.allocations[0]; ordinal += stride) {
    world.failures = {{0, {ordinal}}};
    const auto outcome = world.run("\"auto\"");
    ASSERT_EQ(outcome.error, "") << "allocation " << ordinal;
    EXPECT_TRUE(outcome.has_warning("ran out of memory")) << "allocation " << ordinal;
    EXPECT_FALSE(returns_all && outcome.has_warning("still held")) << "allocation " << ordinal;
    world.failures.clear();
    const std::string schedule = outcome.schedule();
    if (!by_hand.contains(schedule)) by_hand[schedule] = world.run(schedule);
    EXPECT_EQ(outcome.losses, by_hand[schedule].losses);
    EXPECT_TRUE(outcome.weights == by_hand[schedule].weights) << "allocation " << ordinal;
    EXPECT_EQ(outcome.left_in_scopes, by_hand[schedule].left_in_scopes) << "allocation " << ordinal;
    EXPECT_THAT(test_device::take_findings(), IsEmpty()) << "allocation " << ordinal;
    if (testing::Test::HasFailure()) return;
  }
}

TEST_F(FaultsOnTheDevice, MemoryMayRunOutAtEveryAllocation) {
  sweep(mlp(2), 1, 1);
  sweep(mlp(2), 2, is_nightly() ? 1 : 3);
  const std::string gpt = recipe_of_steps(
      "[model]\nkind = 'gpt'\nvocab_size = 257\nn_layer = 1\nn_head = 2\nn_embd = 8\n"
      "n_positions = 8\ndropout = 0.3\n",
      "samples = 96\nbatch_size = 8\nshape = [8]\ntargets = 'sequence'\n", 2);
  sweep(gpt, 1, is_nightly() ? 1 : 19);
  sweep(gpt + "[sharding]\nactivation_checkpointing = ['GptBlock']\n", 2, is_nightly() ? 1 : 41);
  sweep(recipe_of_steps("[model]\nkind = 'resnet_cifar'\nwidth = 4\n",
                        "samples = 96\nbatch_size = 8\nshape = [3, 8, 8]\n", 2),
        2, is_nightly() ? 37 : 301);
}

TEST_F(FaultsOnTheDevice, OfMemoryEndNoCollectiveOfCommunicators) {
  const auto by_nccl = [](const std::string& recipe) {
    return replaced(recipe, "[collectives]\n", "[collectives]\nbackend = 'nccl'\n");
  };
  const std::string gpt = by_nccl(recipe_of_steps(
      "[model]\nkind = 'gpt'\nvocab_size = 257\nn_layer = 2\nn_head = 2\nn_embd = 8\nn_positions = 8\n",
      "samples = 96\nbatch_size = 8\nshape = [8]\ntargets = 'sequence'\n", 2));
  sweep(by_nccl(mlp(2)), 2, is_nightly() ? 1 : 23);
  for (const char* strategy : {"optimizer", "gradients", "full"})
    sweep(gpt + "[sharding]\nstrategy = '" + strategy + "'\n", 2, is_nightly() ? 3 : 211);
  sweep(gpt + "[sharding]\nstrategy = 'hybrid'\nshard_size = 2\n", 4, is_nightly() ? 11 : 307);
}

TEST_F(FaultsOnTheDevice, SmallBudgetsOfTheDeviceHalveTheMicrobatches) {
  const std::string recipe = recipe_of_steps("[model]\nkind = 'mlp'\nhidden = [64]\n",
                                             "samples = 240\nbatch_size = 120\nshape = [6]\n", 4);
  MemoryWorld world{.recipe = recipe + on(Where::kLate), .ranks = 2};
  const auto clean = world.run("\"auto\"");
  ASSERT_EQ(clean.schedule(), "[[0, 1]]");
  MemoryWorld small = world;
  small.recipe += "memory_budget_mb = " + std::to_string(0.9 * clean.peak_mb) + "\n";
  const int64_t emptied = test_device::empty_cache_calls();
  const auto halved = small.run("\"auto\"");
  EXPECT_EQ(halved.error, "");
  EXPECT_EQ(halved.schedule(), "[[0, 2]]");
  EXPECT_GT(test_device::empty_cache_calls(), emptied);
  EXPECT_TRUE(halved.weights == world.run("[[0, 2]]").weights);
  EXPECT_LE(halved.peak_mb, 0.9 * clean.peak_mb);
  EXPECT_THAT(test_device::take_findings(), IsEmpty());
}

// Batches that are read ahead come while a step is aborted.
TEST_F(FaultsOnTheDevice, DoNotCountWhatIsAllocatedOutsideOfScopes) {
  constexpr int kSlot = 7;
  on(Where::kEager);
  const c10::Device where = test_device::device();
  Meter::count_device(kSlot, where);
  const at::TensorOptions bytes = at::dtype(at::kByte).device(where);
  test_device::watch_memory(&Meter::before_device_allocation);
  const int64_t before = Meter::held_by_scopes(kSlot);
  const at::Tensor batch = at::empty({5000}, bytes);
  EXPECT_EQ(Meter::held_by_scopes(kSlot), before);
  at::Tensor held;
  {
    const MemoryScope scope(kSlot);
    held = at::empty({1000}, bytes);
  }
  EXPECT_EQ(Meter::held_by_scopes(kSlot), before + 1000);
  held.reset();
  EXPECT_EQ(Meter::held_by_scopes(kSlot), before);
  Meter::count_device(kSlot, c10::kCPU);
}

TEST_F(FaultsOnTheDevice, LeaveTheMemoryOfLaterRunsToTheCpu) {
  MemoryWorld world{.recipe = mlp(2) + on(Where::kEager), .ranks = 1};
  ASSERT_EQ(world.run("\"auto\"").error, "");
  world.recipe = mlp(2) + on(Where::kCpu);
  world.failures = {{0, {5}}};
  EXPECT_TRUE(world.run("\"auto\"").has_warning("ran out of memory"));
}

}  // namespace
}  // namespace tutti
