#include "sharding/activation_checkpointing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/layers/blocks.h"
#include "models/layers/linear.h"
#include "models/zoo/gpt.h"
#include "runtime/error.h"
#include "sharding/units.h"
#include "tests/runtime/nightly.h"
#include "tests/runtime/scratch.h"
#include "tests/sharding/sharded_run.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<std::string> checkpointed_in(Layer& model, const ShardingSettings& settings) {
  std::vector<std::string> names;
  for (const NamedSlot& one : find_checkpointed(model, settings)) names.push_back(one.name);
  return names;
}

TEST(CheckpointedLayers, AreEveryNthUnitOrThoseNamed) {
  Gpt gpt({.n_positions = 8, .n_embd = 8, .n_layer = 5, .n_head = 2});
  EXPECT_THAT(checkpointed_in(gpt, {}), ElementsAre());
  EXPECT_THAT(checkpointed_in(gpt, {.checkpoint_every = 1}),
              ElementsAre("transformer.h.0", "transformer.h.1", "transformer.h.2", "transformer.h.3",
                          "transformer.h.4"));
  EXPECT_THAT(checkpointed_in(gpt, {.checkpoint_every = 2}),
              ElementsAre("transformer.h.1", "transformer.h.3"));
  EXPECT_THAT(checkpointed_in(gpt, {.units = {{"GptMlp"}}, .checkpoint_every = 3}),
              ElementsAre("transformer.h.2.mlp"));
  EXPECT_THAT(checkpointed_in(gpt, {.checkpoint_layers = {"*.3.mlp", "GptBlock", "*.ln_f"}}),
              testing::SizeIs(6));
  EXPECT_THAT(checkpointed_in(gpt, {.checkpoint_layers = {"*.h.1", "*.1.mlp", "*.2.mlp"}}),
              ElementsAre("transformer.h.1", "transformer.h.2.mlp"));
}

class CheckpointedLayersTest : public testing::Test {
 protected:
  std::string why_not(ShardingSettings settings) {
    settings.activation_checkpointing = {true, "sharding.activation_checkpointing", {"a.toml", 3, 1}};
    try {
      require_checkpointed(gpt_, settings);
    } catch (const UserError& error) {
      return error.what();
    }
    return kNothing;
  }
  static constexpr const char* kNothing = "nothing";
  Gpt gpt_{{.n_positions = 8, .n_embd = 8, .n_layer = 2, .n_head = 2}};
};

TEST_F(CheckpointedLayersTest, NamesThatTheModelHasNotAreAnError) {
  EXPECT_THAT(why_not({.checkpoint_layers = {"GptBlock", "GptBlok"}}),
              AllOf(StartsWith("a.toml:3: sharding.activation_checkpointing"), HasSubstr("'GptBlok'")));
  EXPECT_THAT(why_not({.checkpoint_every = 3}), HasSubstr("fewer units"));
  EXPECT_EQ(why_not({.checkpoint_every = 2}), kNothing);
  EXPECT_EQ(why_not({}), kNothing);
}

TEST_F(CheckpointedLayersTest, UnitsWithinThemAreAnError) {
  using enum ShardingStrategy;
  EXPECT_THAT(why_not({.strategy = kFull, .checkpoint_layers = {"transformer"}}),
              AllOf(HasSubstr("'transformer' contains 'transformer.h.0'"), HasSubstr("gathered alone")));
  EXPECT_THAT(why_not({.strategy = kHybrid, .units = {{"GptMlp"}}, .checkpoint_layers = {"GptBlock"}}),
              HasSubstr("contains 'transformer.h.0.mlp'"));
  EXPECT_EQ(why_not({.strategy = kGradients, .checkpoint_layers = {"transformer"}}), kNothing);
  EXPECT_EQ(why_not({.strategy = kFull, .checkpoint_layers = {"GptBlock", "*.ln_f"}}), kNothing);
  EXPECT_EQ(why_not({.strategy = kFull, .checkpoint_layers = {"GptMlp"}}), kNothing);
}

const std::string kCheckpointed = "activation_checkpointing = true\n";

const std::string kGptWithDropout = R"(seed = 5
[model]
kind = 'gpt'
vocab_size = 300
n_positions = 8
n_embd = 12
n_layer = 3
n_head = 3
dropout = 0.2
)" + kTextData + R"([data.eval]
kind = 'bytes'
path = ')" TUTTI_SOURCE_DIR R"(/examples/data/king_james.txt'
sequence_length = 8
batch_size = 12
subset_num_batches = 2
)" + kClippedAdamW + "eval_interval = '3ba'\n";

const std::string kBert = R"(seed = 5
[model]
kind = 'bert_mlm'
vocab_size = 256
hidden_size = 12
num_hidden_layers = 3
num_attention_heads = 2
intermediate_size = 16
max_position_embeddings = 8
)" + kTextData + "transforms = [{kind = 'mask_tokens', mask_token_id = 0, vocab_size = 256}]\n" +
                          kClippedAdamW;

const std::string kResnetOfCifar = R"(seed = 5
[model]
kind = 'resnet_cifar'
depth = 20
[data.train]
kind = 'synthetic'
samples = 48
batch_size = 8
shape = [3, 8, 8]
)" + kClippedAdamW;

ShardedRun result_of(const std::string& recipe, const Sharded& sharded) {
  const Scratch folder;
  return ShardedJob{recipe, folder.path()}.run(sharded);
}

// With checkpointed activations and without, under the same strategy.
void expect_same_bits(const std::string& recipe, Sharded sharded, const std::string& how = kCheckpointed) {
  const ShardedRun plain = result_of(recipe, sharded);
  sharded.more += how;
  const ShardedRun checkpointed = result_of(recipe, sharded);
  EXPECT_EQ(checkpointed.digest, plain.digest) << sharded.text();
  EXPECT_TRUE(checkpointed.metrics == plain.metrics) << "the log of " << sharded.text();
}

const std::vector<Sharded> kEveryStrategy{{"none", 1},      {"none", 2}, {"optimizer", 2},
                                          {"gradients", 2}, {"full", 2}, {"hybrid", 4, "shard_size = 2\n"}};

TEST(CheckpointedRuns, HaveTheBitsOfOthers) {
  for (const Sharded& sharded : kEveryStrategy) expect_same_bits(kGptWithDropout + steps(6), sharded);
  expect_same_bits(kBert + steps(4), {"full", 4});
  expect_same_bits(kResnetOfCifar + steps(3), {"none", 1});
  expect_same_bits(kResnetOfCifar + steps(3), {"full", 2});
  if (!is_nightly()) return;
  for (const Sharded& sharded : kEveryStrategy)
    for (const std::string& recipe : {kGptWithDropout, kBert, kResnetOfCifar})
      expect_same_bits(recipe + steps(20), sharded);
}

TEST(CheckpointedRuns, HaveThemWhicheverLayersTheyAre) {
  for (const char* how : {"2", "['GptMlp', '*.ln_f', 'transformer.wte']"})
    for (const Sharded& sharded : {Sharded{"gradients", 2}, Sharded{"full", 3}})
      expect_same_bits(kGptWithDropout + steps(4), sharded,
                       "activation_checkpointing = " + std::string(how) + '\n');
  expect_same_bits(kGptWithDropout + steps(4), {"optimizer", 2},
                   "activation_checkpointing = ['transformer']\n");
}

TEST(CheckpointedRuns, HaveThemWithMicrobatchesAutocastAndPasses) {
  const std::string sam = "[[algorithms]]\nkind = 'sam'\ninterval = 2\n";
  const std::string selective =
      "[[algorithms]]\nkind = 'selective_backprop'\nstart = 0.2\nend = 0.8\nkeep = 0.5\n";
  const std::string watched = "[[callbacks]]\nkind = 'activation_monitor'\ninterval = '1ba'\n";
  const std::string gyro = "[[algorithms]]\nkind = 'gyro_dropout'\nsigma = 4\ntau = 2\n";
  const std::string deep =
      "[[algorithms]]\nkind = 'ghost_batchnorm'\nghost_batch_size = 2\n"
      "[[algorithms]]\nkind = 'stochastic_depth'\ntarget_layer_name = 'BasicBlock'\n";
  expect_same_bits(kGptWithDropout + steps(4) + "grad_accum = 3\n" + watched, {"full", 2});
  expect_same_bits(kGptWithDropout + steps(4) + "precision = 'amp_bf16'\n", {"full", 2});
  expect_same_bits(kGptWithDropout + steps(4) + "precision = 'amp_fp16'\n" + sam, {"none", 2});
  expect_same_bits(kGptWithDropout + steps(4) + sam + selective, {"full", 2, "prefetch = false\n"});
  expect_same_bits(kGptWithDropout + steps(4) + gyro, {"full", 2, "reshard_after_forward = false\n"});
  expect_same_bits(kResnetOfCifar + steps(4) + deep, {"full", 2});
}

TEST(CheckpointedRuns, ResumeWithTheSameBits) {
  const std::string saved = "[checkpoint]\ninterval = '3ba'\n";
  for (const Sharded& plain : {Sharded{"none", 1}, Sharded{"full", 2}}) {
    Sharded sharded = plain;
    sharded.more = kCheckpointed;
    const Scratch folder;
    ShardedJob{kGptWithDropout + steps(3) + saved, folder.path()}.run(sharded);
    const ShardedRun resumed =
        ShardedJob{kGptWithDropout + steps(6) + saved, folder.path(), "auto"}.run(sharded);
    EXPECT_EQ(resumed.digest, result_of(kGptWithDropout + steps(6), plain).digest) << sharded.text();
  }
}

TEST(CheckpointedRuns, NameLayersThatTheModelHasNot) {
  const std::string why = message_of<std::exception>([] {
    result_of(kBert + steps(1), {"full", 2, "activation_checkpointing = ['BertLayr']\n"});
  });
  EXPECT_THAT(why, AllOf(HasSubstr("sharding.activation_checkpointing"), HasSubstr("'BertLayr'")));
}

// Of 24 blocks: the peak without checkpointing is nearly all activations.
TEST(CheckpointedRuns, HoldAThirdOfTheActivations) {
  std::string recipe = kGptWithDropout;
  const auto replace = [&](const std::string& from, const std::string& to) {
    recipe.replace(recipe.find(from), from.size(), to);
  };
  replace("n_embd = 12\nn_layer = 3", "n_embd = 18\nn_layer = 24");
  replace("n_positions = 8", "n_positions = 48");
  for (int i = 0; i < 2; ++i) {
    replace("sequence_length = 8", "sequence_length = 48");
    replace("batch_size = 12", "batch_size = 8");
  }
  replace("eval_interval = '3ba'", "eval_interval = '0ba'");
  recipe += steps(1);
  for (const Sharded& plain : {Sharded{"none", 1}, Sharded{"full", 2}}) {
    Sharded sharded = plain;
    sharded.more = kCheckpointed;
    EXPECT_LT(result_of(recipe, sharded).peak_mb, 0.35 * result_of(recipe, plain).peak_mb) << plain.text();
  }
}

}  // namespace
}  // namespace tutti
