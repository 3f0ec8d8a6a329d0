// TorchScript, and a torch::nn::Module of C++, train as the models of the zoo do.

#include <gtest/gtest.h>

#include "models/torch/torch_module.h"
#include "tests/models/torch/adapted_nets.h"
#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"

namespace tutti {
namespace {

std::string synthetic_data(const std::string& shape, int classes) {
  const std::string same =
      "kind = 'synthetic'\nshape = " + shape + "\nclasses = " + std::to_string(classes) + "\n";
  return "[data.train]\nsamples = 48\nbatch_size = 16\n" + same +
         "[data.eval]\nsamples = 12\nbatch_size = 8\n" + same + kClippedAdamW;
}

std::string script(const std::string& name, const std::string& shape) {
  return "seed = 5\n[model]\nkind = 'torchscript'\npath = '" TUTTI_SOURCE_DIR "/tests/golden/scripts/" +
         name + ".pt'\n" + synthetic_data(shape, 5);
}

const std::string kControlFlow = script("control_flow", "[3, 6]"), kTraced = script("traced", "[3, 6, 6]"),
                  kModule = "seed = 5\n[model]\nkind = 'mlp'\n" + synthetic_data("[1, 4, 4]", 3);

ShardedRun run_of(const std::string& recipe, const Sharded& sharded, const std::string& resumed_in = "") {
  const Scratch folder;
  ShardedJob job{recipe, resumed_in.empty() ? folder.path() : resumed_in};
  if (!resumed_in.empty()) job.resume = "auto";
  job.prepare = [](Job& of) {
    if (of.recipe.at("model").at("kind").text() != "mlp") return;  // the program's in its place
    of.make_model = [](const Setting&, const SampleSpec&) {
      return std::make_shared<LayerClassifier>(AdaptedNet{.dropout = 0.2}.layer());
    };
  };
  return job.run(sharded);
}

void expect_bits_of_the_first(const std::string& recipe, const std::vector<std::string>& strategies) {
  const ShardedRun first = run_of(recipe, {strategies[0]});
  for (const std::string& strategy : strategies) {
    const ShardedRun other = run_of(recipe, {strategy});
    EXPECT_EQ(other.digest, first.digest) << strategy;
    EXPECT_TRUE(other.metrics == first.metrics) << strategy;
  }
}

TEST(ScriptRuns, HaveTheBitsOfUnshardedOnes) {
  expect_bits_of_the_first(kControlFlow + steps(5), {"none", "full", "none"});
  expect_bits_of_the_first(kTraced + steps(5), {"none", "optimizer", "gradients", "full"});
}

TEST(ScriptRuns, HaveThemInMicrobatchesAndWithCheckpointedActivations) {
  const std::string recipe = kControlFlow + steps(4) + "grad_accum = 4\n";
  expect_bits_of_the_first(recipe, {"none", "optimizer"});
  const ShardedRun plain = run_of(recipe, {"full"});
  EXPECT_EQ(
      run_of(recipe, {"full", 2, "units = ['blocks.*']\nactivation_checkpointing = ['Cell', 'blocks.*']\n"})
          .digest,
      plain.digest);
}

TEST(ScriptRuns, ResumeWhereTheyEnded) {
  const Scratch folder;
  ShardedJob{kControlFlow + steps(3), folder.path()}.run({"full"});
  EXPECT_EQ(run_of(kControlFlow + steps(6), {"full"}, folder.path()).digest,
            run_of(kControlFlow + steps(6), {"full"}).digest);
}

TEST(TorchModuleRuns, HaveTheBitsOfUnshardedOnes) {
  expect_bits_of_the_first(kModule + steps(5), {"none", "optimizer", "gradients", "full"});
}

TEST(TorchModuleRuns, HaveThemWithCheckpointedActivations) {
  const std::string recipe = kModule + steps(4) + "grad_accum = 2\n";
  const ShardedRun plain = run_of(recipe, {"full"});
  EXPECT_EQ(run_of(recipe, {"full", 2, "activation_checkpointing = ['Net']\n"}).digest, plain.digest);
}

}  // namespace
}  // namespace tutti
