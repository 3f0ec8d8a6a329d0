// Each optimizer trains under every strategy, and resumes on other ranks.

#include <gtest/gtest.h>

#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"

namespace tutti {
namespace {

// Embeddings, matrices and vectors; the last rank of three has fewer rows, or none.
std::string trained_by(const std::string& kind, const std::string& keys = "") {
  return R"(seed = 5
[model]
kind = 'gpt'
vocab_size = 300
n_positions = 8
n_embd = 12
n_layer = 2
n_head = 3
)" + kTextData +
         "[optimizer]\nkind = '" + kind + "'\nlr = 0.004\nweight_decay = 0.1\nno_decay = ['*.bias']\n" +
         keys + "[scheduler]\nkind = 'warmup_stable_decay'\nt_warmup = '1ba'\nt_decay = '0.5dur'\n[train]\n";
}

const std::string kGroups =
    "layer_decay = 0.7\n[[optimizer.groups]]\nmatch = ['*.ln_*']\nlr = 0.01\nweight_decay = 0.0\n";

ShardedRun outcome(const std::string& recipe, const Sharded& sharded) {
  const Scratch folder;
  return ShardedJob{recipe, folder.path()}.run(sharded);
}

void expect_bits_of_none(const std::string& recipe, int ranks, const std::vector<std::string>& strategies) {
  const ShardedRun none = outcome(recipe, {"none", ranks});
  for (const std::string& strategy : strategies) {
    const ShardedRun other = outcome(recipe, {strategy, ranks});
    EXPECT_EQ(other.digest, none.digest) << strategy << " on " << ranks << recipe;
    EXPECT_TRUE(other.metrics == none.metrics) << strategy << " on " << ranks << recipe;
  }
}

class OptimizerRuns : public testing::TestWithParam<const char*> {};

TEST_P(OptimizerRuns, HaveTheBitsOfUnshardedOnes) {
  const std::string recipe = trained_by(GetParam(), kGroups) + steps(4);
  expect_bits_of_none(recipe, 2, {"optimizer", "gradients", "full"});
  expect_bits_of_none(recipe, 3, {"full"});
}

TEST_P(OptimizerRuns, HaveThemInMicrobatches) {
  expect_bits_of_none(trained_by(GetParam()) + steps(3) + "grad_accum = 2\n", 2, {"optimizer"});
}

TEST_P(OptimizerRuns, ResumeOnOtherRanks) {
  const std::string checkpoints = "[checkpoint]\ninterval = '2ba'\n", recipe = trained_by(GetParam());
  const Scratch folder;
  const std::string begun = folder.path("begun");
  ShardedJob{recipe + steps(2) + checkpoints, begun}.run({"full", 3});
  const auto rest = [&](const std::string& name, const Sharded& as) {
    return ShardedJob{recipe + steps(4) + checkpoints + "load_path = '" + begun + "'\n", folder.path(name)}
        .run(as);
  };
  const auto last_loss = [](const ShardedRun& run) {
    return std::stod(run.metrics.substr(run.metrics.rfind("loss\": ") + 7));
  };
  const double whole = last_loss(rest("same", {"full", 3}));
  EXPECT_NEAR(last_loss(rest("one", {"none", 1})), whole, 1e-5);
  EXPECT_NEAR(last_loss(rest("two", {"gradients", 2})), whole, 1e-5);
}

TEST_P(OptimizerRuns, ResumeWhereTheyEnded) {
  const Scratch folder;
  const std::string whole = trained_by(GetParam(), kGroups) + steps(4);
  ShardedJob begun{whole + "[checkpoint]\ninterval = '2ba'\n", folder.path()};
  begun.prepare = [](Job& job) {
    job.before_step = [](int rank, int64_t step, const Trainee&, const Batch&) {
      if (rank == 0 && step == 4) throw std::runtime_error("lost");
    };
  };
  EXPECT_ANY_THROW(begun.run({"full"}));
  ShardedJob rest{whole + "[checkpoint]\ninterval = '2ba'\n", folder.path()};
  rest.resume = "auto";
  EXPECT_EQ(rest.run({"full"}).digest, outcome(whole, {"full"}).digest);
}

INSTANTIATE_TEST_SUITE_P(All, OptimizerRuns,
                         testing::Values("nadam", "adagrad", "rmsprop", "adafactor", "lion", "lamb", "muon"),
                         [](const auto& info) { return std::string(info.param); });

const std::string kFrozen = "freeze = ['*.wte.*', '*.h.0.*', '*.mlp.*.bias']\n";

std::string frozen(const std::string& recipe) {
  std::string with = recipe;
  return with.insert(with.find("vocab_size"), kFrozen);
}

// Whole units, and parts of units.
TEST(FrozenParameters, ChangeNothingUnderAnyStrategy) {
  const std::string recipe = frozen(trained_by("adamw")) + steps(4);
  EXPECT_NE(outcome(recipe, {"none"}).digest, outcome(trained_by("adamw") + steps(4), {"none"}).digest);
  expect_bits_of_none(recipe, 2, {"optimizer", "gradients", "full"});
  expect_bits_of_none(recipe, 3, {"full"});
  expect_bits_of_none(frozen(trained_by("lamb")) + steps(3), 2, {"full"});
}

}  // namespace
}  // namespace tutti
