#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/error.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"

namespace tutti {
namespace {

const std::string kEvaluated = kSyntheticMlp + "eval_interval = '4ba'\n";

// With a batch norm and dropout; the last batch of an epoch is short.
const std::string kNet = R"(seed = 5
[model]
kind = 'sequential'
layers = ['Linear(6, 9)', 'BatchNorm1d(9)', 'GELU()', 'Dropout(p=0.2)', 'Linear(9, 10)']
[data.train]
kind = 'synthetic'
samples = 53
batch_size = 16
shape = [6]
[data.eval]
kind = 'synthetic'
samples = 21
batch_size = 8
shape = [6]
)" + kClippedAdamW + "eval_interval = '3ba'\n";

const std::string kResnet = R"(seed = 5
[model]
kind = 'resnet_cifar'
depth = 20
[data.train]
kind = 'synthetic'
samples = 44
batch_size = 16
shape = [3, 8, 8]
)" + kClippedAdamW;

const std::string kGpt = R"(seed = 5
[model]
kind = 'gpt'
vocab_size = 300
n_positions = 8
n_embd = 12
n_layer = 3
n_head = 3
dropout = 0.1
)" + kTextData + kClippedAdamW;

std::string grains(int count) {
  return "[reproducibility]\nmode = 'elastic'\ngrains = " + std::to_string(count) + "\n";
}

ShardedRun run(const std::string& recipe, const Sharded& sharded) {
  const Scratch folder;
  return ShardedJob{recipe, folder.path()}.run(sharded);
}

void expect_one_result(const std::string& recipe, const std::vector<Sharded>& all) {
  const ShardedRun alone = run(recipe, {"none", 1});
  for (const Sharded& sharded : all) {
    const ShardedRun other = run(recipe, sharded);
    EXPECT_EQ(other.digest, alone.digest) << sharded.text();
    EXPECT_EQ(other.metrics, alone.metrics) << sharded.text();
  }
}

const std::vector<Sharded> kAll{{"none", 2},      {"none", 3},     {"none", 4},
                                {"none", 8},      {"optimizer", 2}, {"optimizer", 5},
                                {"gradients", 2}, {"gradients", 3}, {"gradients", 4},
                                {"full", 2},      {"full", 3},      {"full", 4},
                                {"full", 8},      {"hybrid", 4, "shard_size = 2\n"},
                                {"hybrid", 6, "shard_size = 2\n"}};
const std::vector<Sharded> kSome{{"none", 2}, {"none", 3}, {"optimizer", 4}, {"gradients", 2}, {"full", 3}};

TEST(ElasticRuns, HaveOneResultOnAnyNumberOfRanks) {
  expect_one_result(kEvaluated + steps(12) + grains(8), kAll);
  expect_one_result(kNet + steps(10) + grains(4), kAll);
}

// With a grain a rank the sums are those of any run.
TEST(ElasticRuns, OfAsManyGrainsAsRanksHaveTheBitsOfPlainRuns) {
  for (const Sharded& sharded : std::vector<Sharded>{{"none", 4}, {"full", 4}, {"gradients", 2}})
    for (const std::string& recipe : {kEvaluated, kNet, kGpt})
      EXPECT_EQ(run(recipe + steps(6) + grains(sharded.ranks), sharded).digest,
                run(recipe + steps(6), sharded).digest)
          << sharded.text();
}

TEST(ElasticRuns, OfConvolutionsAndTextsHaveOneResult) {
  expect_one_result(kResnet + steps(4) + grains(4), kSome);
  expect_one_result(kGpt + steps(6) + grains(4), kSome);
}

TEST(ElasticRuns, HaveOneResultInSixteenBits) {
  expect_one_result(kNet + steps(10) + "precision = 'amp_bf16'\n" + grains(4), kSome);
  expect_one_result(kNet + steps(10) + "precision = 'amp_fp16'\n[precision]\ninit_scale = 1e9\n" + grains(4), kSome);
}

TEST(ElasticRuns, HaveOneResultWithAlgorithms) {
  for (const char* algorithm : {"ema", "sam", "mixup", "label_smoothing", "selective_backprop"})
    expect_one_result(kEvaluated + steps(8) + "[[algorithms]]\nkind = '" + algorithm + "'\n" + grains(4), kSome);
}

TEST(ElasticRuns, GoOnOnOtherRanks) {
  const std::string recipe = kNet + grains(4) + "[checkpoint]\ninterval = '2ba'\n";
  std::string digest;
  for (const int ranks : {4, 3, 1}) {
    const Scratch folder;
    const auto part = [&](int count, const Sharded& sharded) {
      std::string whole = recipe;
      whole.replace(whole.find("[train]\n"), 8, "[train]\n" + steps(count));
      return ShardedJob{whole, folder.path(), "auto"}.run(sharded);
    };
    part(5, {"none", 4});
    const ShardedRun result = part(9, {"full", ranks});
    if (digest.empty()) digest = result.digest;
    EXPECT_EQ(result.digest, digest) << ranks;
  }
}

// Scores that are all kept.
TEST(ElasticRuns, HaveOneAreaUnderCurves) {
  std::string recipe = kNet;
  const std::string eval = "[data.eval]\n";
  recipe.insert(recipe.find(eval) + eval.size(), "metrics = [{ kind = 'MulticlassAUROC' }]\n");
  expect_one_result(recipe + steps(6) + grains(4), kSome);
}

std::string refusal(const std::string& recipe) {
  try {
    run(recipe, {"none", 2});
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST(ElasticRuns, RefuseWhatDependsOnTheRanks) {
  const std::string elastic = grains(4);
  EXPECT_NE(refusal(kEvaluated + steps(2) + "grad_accum = 2\n" + elastic)
                .find("train.grad_accum = 2: contradicts reproducibility.mode = \"elastic\""),
            std::string::npos);
  EXPECT_NE(refusal(kEvaluated + steps(2) + "device_train_microbatch_size = 2\n" + elastic)
                .find("train.device_train_microbatch_size = 2: contradicts reproducibility.mode"),
            std::string::npos);
  EXPECT_NE(refusal(kEvaluated + steps(2) + grains(3)).find("expected a power of two"), std::string::npos);
  EXPECT_NE(refusal(kEvaluated + steps(2) + grains(32)).find("expected a sample for each of 32"),
            std::string::npos);
}

}  // namespace
}  // namespace tutti
