#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/hdf5/hdf5_writer.h"
#include "models/model.h"
#include "tensors/finite.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

TEST(NonFiniteTest, OneBadBatchCostsOneStep) {
  SleepingWorld world;
  world.forward = std::chrono::milliseconds(1);
  world.steps = 10;
  const std::size_t gaps = world.step_ms().size();
  world.poisoned_step = 3;
  EXPECT_EQ(world.step_ms().size(), gaps - 1);
}

TEST(NonFiniteTest, OneInfiniteGradientUnderAFiniteLossCostsOneStep) {
  SleepingWorld world;
  world.forward = std::chrono::milliseconds(1);
  world.steps = 10;
  const std::size_t gaps = world.step_ms().size();
  world.steep_step = 3;
  EXPECT_EQ(world.step_ms().size(), gaps - 1);
}

// Each rank has one sample of each class: one of the two is wrong by all its weight, and its gradient is the
// input. That is finite on each rank, but not in the sum of two.
TEST(NonFiniteTest, GradientThatOverflowsInTheSumOfTheRanksChangesNothing) {
  const Scratch folder;
  at::Tensor input = at::zeros({4, 16});
  input.select(1, 0).fill_(2e38);
  PosixDisk disk;
  write_hdf5(disk, folder.path("data.h5"),
             {hdf5_array("input", input), hdf5_array("target", at::arange(4, at::kLong).remainder(2))});
  LocalRunOptions options;
  options.ranks = 2;
  options.run_dir = folder.path("run");
  options.quiet = true;
  train_in_one_process(
      recipe_of("seed = 1\n[model]\nkind = 'mlp'\nhidden = []\n[data.train]\nkind = 'hdf5'\npath = '" +
                (folder.path("data.h5")) +
                "'\nbatch_size = 4\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ba'\n"),
      options);
  const auto weights = newest_checkpoint(folder.path("run")).tensors;
  ASSERT_FALSE(weights.empty());
  for (const auto& [name, tensor] : weights) EXPECT_TRUE(all_finite(tensor)) << name;
}

// Its gradient is the sum of its inputs: one number of many may be the one that overflows.
class Adding final : public Model {
 public:
  Adding() : weight_(add_parameter("weight", {600, 700}, [](at::Tensor& t, at::Generator) { t.zero_(); })) {}
  TensorTree forward(const Batch& batch) override {
    return (batch["input"] * weight_.tensor).flatten(1).sum(1);
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  const char* kind() const override { return "Adding"; }

 private:
  Parameter& weight_;
};

TEST(NonFiniteTest, OneNumberOfALargeGradientThatOverflowsInTheSumOfTheRanksChangesNothing) {
  const Scratch folder;
  at::Tensor input = at::zeros({2, 600, 700});
  input.select(1, 123).select(1, 456).fill_(2e38);
  ASSERT_GT(input[0].numel(), kReadWhole);
  PosixDisk disk;
  write_hdf5(disk, folder.path("data.h5"),
             {hdf5_array("input", input), hdf5_array("target", at::arange(2, at::kLong))});
  LocalRunOptions options;
  options.ranks = 2;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [](Job& job) {
    job.make_model = [](const Setting&, const SampleSpec&) { return std::make_shared<Adding>(); };
  };
  train_in_one_process(
      recipe_of("seed = 1\n[model]\nkind = 'mlp'\n[data.train]\nkind = 'hdf5'\npath = '" +
                folder.path("data.h5") +
                "'\nbatch_size = 2\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '1ba'\n"),
      options);
  const auto weights = newest_checkpoint(folder.path("run")).tensors;
  EXPECT_TRUE(all_finite(weights.at("model/weight")));
  EXPECT_EQ(weights.at("optimizers/weight/step").item<int64_t>(), 0);
}

// Its mean loss is that of no token at all.
TEST(NonFiniteTest, ABatchInWhichNothingCountsChangesNothing) {
  for (const int ranks : {1, 2}) {
    const Scratch folder;
    LocalRunOptions options;
    options.ranks = ranks;
    options.run_dir = folder.path("run");
    options.quiet = true;
    options.prepare = [](Job& job) {
      job.before_step = [](int, int64_t step, const Trainee&, const Batch& batch) {
        if (step == 2) batch["target"].fill_(-100);
      };
    };
    train_in_one_process(
        recipe_of(
            "seed = 1\n[model]\nkind = 'gpt'\nvocab_size = 8\nn_positions = 4\nn_embd = 8\nn_layer = 1\n"
            "n_head = 1\n[data.train]\nkind = 'synthetic'\ntargets = 'sequence'\nshape = [4]\n"
            "vocab = 8\nsamples = 12\nbatch_size = 4\n[optimizer]\nkind = 'adamw'\n[train]\n"
            "max_duration = '3ba'\n"),
        options);
    PosixDisk disk;
    const auto all = newest_checkpoint(folder.path("run")).tensors;
    for (const auto& [name, tensor] : all) EXPECT_TRUE(all_finite(tensor)) << name;
    EXPECT_EQ(all.at("optimizers/transformer.wte.weight/step").item<int64_t>(), 2) << ranks;
  }
}

// Numbers so large that every gradient overflows, from step `from` on.
int exit_code_of(int64_t from, int64_t steps) {
  const Scratch folder;
  LocalRunOptions options;
  options.ranks = 2;
  options.run_dir = folder.path("run");
  options.quiet = true;
  options.prepare = [&](Job& job) {
    job.before_step = [from](int, int64_t step, const Trainee&, const Batch& batch) {
      if (step >= from) batch["input"].fill_(INFINITY);
    };
  };
  const std::string recipe =
      "seed = 1\n[model]\nkind = 'mlp'\nhidden = [4]\n[data.train]\nkind = 'synthetic'\nshape = [6]\n"
      "samples = 48\nbatch_size = 24\n[optimizer]\nkind = 'sgd'\n[train]\nmax_duration = '" +
      std::to_string(steps) + "ba'\n";
  const int code = train_in_one_process(recipe_of(recipe), options).exit_code;
  EXPECT_FALSE(newest_checkpoint(options.run_dir).tensors.empty());
  return code;
}

TEST(NonFiniteTest, ARunThatEndsInSkippedStepsHasAnExitCodeOfItsOwn) {
  EXPECT_EQ(exit_code_of(/*from=*/1, /*steps=*/3), 4) << "nothing was trained";
  EXPECT_EQ(exit_code_of(/*from=*/6, /*steps=*/15), 4) << "ten in a row";
  EXPECT_EQ(exit_code_of(/*from=*/7, /*steps=*/15), 0);
}

}  // namespace
}  // namespace tutti
