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

const std::string kLlama = R"(seed = 5
[model]
kind = 'llama'
vocab_size = 300
hidden_size = 8
intermediate_size = 12
num_hidden_layers = 2
num_attention_heads = 2
num_key_value_heads = 1
max_position_embeddings = 16
[[algorithms]]
kind = 'lora'
r = 2
targets = ['all-linear']
)" + kTextData + kClippedAdamW;

// With a batch norm.
const std::string kExported = R"(seed = 5
[model]
kind = 'exported'
path = ')" TUTTI_SOURCE_DIR R"(/tests/golden/exported/convnet.pt2'
[data.train]
kind = 'synthetic'
samples = 44
batch_size = 16
shape = [3, 6, 6]
classes = 5
[data.eval]
kind = 'synthetic'
samples = 12
batch_size = 8
shape = [3, 6, 6]
classes = 5
)" + kClippedAdamW;

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

const std::vector<Sharded> kAll{{"none", 2},
                                {"none", 3},
                                {"none", 4},
                                {"none", 8},
                                {"optimizer", 2},
                                {"optimizer", 5},
                                {"gradients", 2},
                                {"gradients", 3},
                                {"gradients", 4},
                                {"full", 2},
                                {"full", 3},
                                {"full", 4},
                                {"full", 8},
                                {"full", 5},
                                {"hybrid", 4, "shard_size = 2\n"},
                                {"hybrid", 6, "shard_size = 2\n"}};
const std::vector<Sharded> kSome{{"none", 2}, {"none", 3}, {"optimizer", 4}, {"gradients", 2}, {"full", 3}};

const std::vector<Sharded>& worlds() { return is_nightly() ? kAll : kSome; }

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
  expect_one_result(kResnet + steps(4) + grains(4), worlds());
  expect_one_result(kGpt + steps(6) + grains(4), worlds());
}

// Rows of 4,000 bytes: of a rank's grains only some begin where a cache line does.
TEST(ElasticRuns, HaveOneResultWhereverSamplesLie) {
  std::string wide = kEvaluated;
  for (std::size_t at; (at = wide.find("[12]")) != std::string::npos;) wide.replace(at, 4, "[1000]");
  wide.replace(wide.find("batch_size = 20"), 15, "batch_size = 8");
  expect_one_result(wide + steps(6) + grains(8), {{"none", 8}, {"none", 2}, {"full", 4}});
}

TEST(ElasticRuns, OfLowRanksAndProgramsHaveOneResult) {
  expect_one_result(kLlama + steps(6) + grains(4), worlds());
  expect_one_result(kExported + steps(6) + grains(4), worlds());
}

TEST(ElasticRuns, HaveOneResultInSixteenBits) {
  expect_one_result(kNet + steps(10) + "precision = 'amp_bf16'\n" + grains(4), worlds());
  expect_one_result(kNet + steps(10) + "precision = 'amp_fp16'\n[precision]\ninit_scale = 1e9\n" + grains(4),
                    worlds());
}

TEST(ElasticRuns, HaveOneResultWithAlgorithms) {
  for (const char* algorithm : {"ema", "sam", "mixup", "label_smoothing", "selective_backprop"})
    expect_one_result(kEvaluated + steps(8) + "[[algorithms]]\nkind = '" + algorithm + "'\n" + grains(4),
                      worlds());
}

TEST(ElasticRuns, ResumeOnOtherRanks) {
  const auto recipe = [](int count) {
    std::string whole = kNet + grains(4) + "[checkpoint]\ninterval = '2ba'\n";
    return whole.replace(whole.find("[train]\n"), 8, "[train]\n" + steps(count));
  };
  const std::string undisturbed = run(recipe(9), {"none", 1}).digest;
  for (const int ranks : {4, 3, 1}) {
    const Scratch folder;
    ShardedJob{recipe(5), folder.path()}.run({"none", 4});
    EXPECT_EQ((ShardedJob{recipe(9), folder.path(), "auto"}.run({"full", ranks}).digest), undisturbed)
        << ranks;
  }
}

TEST(ElasticRuns, DoNotResumeInOtherGrains) {
  const Scratch folder;
  const std::string recipe = kNet + steps(4);
  ShardedJob{recipe + grains(4), folder.path()}.run({"none", 2});
  const auto refusal = [&](const std::string& more) {
    std::string longer = recipe;
    longer.replace(longer.find("'4ba'"), 5, "'6ba'");
    try {
      ShardedJob{longer + more, folder.path(), "auto"}.run({"none", 2});
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_NE(refusal(grains(8)).find("reproducibility.grains = 4"), std::string::npos);
  EXPECT_NE(refusal(grains(4) + "[device]\nthreads = 2\n").find("device.threads = 1"), std::string::npos);
}

// Scores that are all kept.
TEST(ElasticRuns, HaveOneAreaUnderCurves) {
  std::string recipe = kNet;
  const std::string eval = "[data.eval]\n";
  recipe.insert(recipe.find(eval) + eval.size(), "metrics = [{ kind = 'MulticlassAUROC' }]\n");
  expect_one_result(recipe + steps(6) + grains(4), worlds());
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
