#include "cli/convert/foundry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "cli/convert/yaml_reader.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::Pair;

RecipeDraft converted(const std::string& yaml) { return recipe_of_foundry(parse_yaml(yaml, "r.yaml")); }

RecipeDraft converted_file(const std::string& name) {
  return recipe_of_foundry(read_yaml(std::string(TUTTI_SOURCE_DIR) + "/tests/golden/foundry/" + name));
}

// As `tutti check` reads it.
Setting resolved(const RecipeDraft& draft) {
  return resolve_recipe(parse_recipe(write_recipe(draft.recipe()), "r.toml"));
}

std::map<std::string, std::string> left_out(const RecipeDraft& draft) {
  std::map<std::string, std::string> reasons;
  for (const auto& one : draft.left_out()) reasons[one.name] = one.why;
  return reasons;
}

TEST(Foundry, MptIsAGpt) {
  const Setting recipe = resolved(converted_file("mpt-125m.yaml"));
  const Setting& model = recipe.at("model");
  EXPECT_EQ(model.at("kind").text(), "gpt");
  EXPECT_EQ(model.at("n_embd").integer(), 768);
  EXPECT_EQ(model.at("n_head").integer(), 12);
  EXPECT_EQ(model.at("n_layer").integer(), 12);
  EXPECT_EQ(model.at("n_positions").integer(), 2048);
  EXPECT_EQ(model.at("vocab_size").integer(), 50368);
  EXPECT_EQ(recipe.at("seed").integer(), 17);
}

TEST(Foundry, ShardsAreMds) {
  const Setting recipe = resolved(converted_file("mpt-125m.yaml"));
  const Setting& train = recipe.at("data").at("train");
  EXPECT_EQ(train.at("kind").text(), "mds");
  EXPECT_THAT(train.at("path").text(), HasSubstr("my-copy-c4/train"));
  EXPECT_EQ(train.at("num_classes").integer(), 50368);
  EXPECT_EQ(train.at("batch_size").integer(), 256);
  EXPECT_EQ(train.at("num_workers").integer(), 8);
  EXPECT_TRUE(train.at("shuffle").boolean());
  EXPECT_TRUE(train.at("drop_last").boolean());
  EXPECT_EQ(train.at("transforms").array().at(0).at("kind").text(), "next_token");
  const Setting& eval = recipe.at("data").at("eval");
  EXPECT_THAT(eval.at("path").text(), HasSubstr("my-copy-c4/val"));
  EXPECT_EQ(eval.at("device_batch_size").integer(), 16);
  EXPECT_EQ(eval.at("subset_num_batches").integer(), -1);
}

TEST(Foundry, TrainingIsComposers) {
  const Setting recipe = resolved(converted_file("mpt-7b.yaml"));
  EXPECT_EQ(recipe.at("optimizer").at("kind").text(), "decoupled_adamw");
  EXPECT_EQ(recipe.at("optimizer").at("lr").number(), 1.2e-4);
  EXPECT_THAT(recipe.at("optimizer").at("betas").numbers(), ElementsAre(0.9, 0.95));
  EXPECT_EQ(recipe.at("scheduler").at("kind").text(), "cosine_annealing_with_warmup");
  EXPECT_EQ(recipe.at("scheduler").at("t_warmup").text(), "100ba");
  EXPECT_EQ(recipe.at("scheduler").at("alpha_f").number(), 0.1);
  const Setting& train = recipe.at("train");
  EXPECT_EQ(train.at("max_duration").text(), "63900ba");
  EXPECT_EQ(train.at("eval_interval").text(), "5000ba");
  EXPECT_EQ(train.at("device_train_microbatch_size").integer(), 8);
  EXPECT_EQ(train.at("precision").text(), "amp_bf16");
  EXPECT_EQ(recipe.at("sharding").at("strategy").text(), "full");
  EXPECT_TRUE(recipe.at("sharding").at("activation_checkpointing").boolean());
  EXPECT_EQ(recipe.at("precision").at("reduce_dtype").text(), "bf16");
  EXPECT_EQ(recipe.at("algorithms").array().at(0).at("clipping_threshold").number(), 1.0);
  std::vector<std::string> callbacks;
  for (const Setting& one : recipe.at("callbacks").array()) callbacks.push_back(one.at("kind").text());
  EXPECT_THAT(callbacks, ElementsAre("speed_monitor", "lr_monitor", "memory_monitor", "runtime_estimator"));
}

TEST(Foundry, FineTuningReadsPairsAndAFolderOfTransformers) {
  const RecipeDraft draft = converted_file("gpt2-finetune.yaml");
  const Setting recipe = draft.recipe();
  EXPECT_EQ(recipe.at("model").at("kind").text(), "hf");
  EXPECT_EQ(recipe.at("model").at("path").text(), "gpt2");
  const Setting& train = recipe.at("data").at("train");
  EXPECT_EQ(train.at("kind").text(), "text");
  EXPECT_EQ(train.at("path").text(), "finetune_example/train.jsonl");
  EXPECT_EQ(train.at("tokenizer").text(), "gpt2");
  EXPECT_EQ(train.at("prompt_field").text(), "prompt");
  EXPECT_EQ(train.at("sequence_length").integer(), 512);
  EXPECT_FALSE(recipe.at("data").has("eval"));
  EXPECT_THAT(left_out(draft), AllOf(Contains(Pair("train_loader.dataset.preprocessing_fn",
                                                   HasSubstr("lines with prompt and response"))),
                                     Contains(Pair("train_loader.dataset", HasSubstr("fewer steps")))));
  EXPECT_EQ(recipe.at("loggers").array().at(0).at("kind").text(), "wandb");
  EXPECT_THAT(draft.advice, Contains(HasSubstr("huggingface-cli download gpt2")));
}

TEST(Foundry, ASettingThatIsLeftOutIsNamedWithItsReason) {
  const RecipeDraft draft = converted_file("mpt-125m.yaml");
  const auto reasons = left_out(draft);
  EXPECT_EQ(reasons.at("fsdp_config.limit_all_gathers"),
            "one unit is gathered ahead of the one that computes");
  EXPECT_THAT(reasons, Contains(Key("model.attn_config.attn_impl")));
  EXPECT_THAT(reasons, Not(Contains(Key("model.expansion_ratio"))));
  EXPECT_THAT(reasons, Not(Contains(Key("eval_first"))));
  const auto line =
      std::ranges::find(draft.left_out(), "fsdp_config.limit_all_gathers", &LeftOut::name)->line;
  EXPECT_EQ(line, 56);
}

TEST(Foundry, OtherNetworksAreNotTakenForAGpt) {
  const auto reasons = left_out(converted(
      "max_seq_len: 8\nmodel:\n  name: mpt_causal_lm\n  d_model: 8\n  expansion_ratio: 8\n  no_bias: true\n"
      "  resid_pdrop: 0.1\n  emb_pdrop: 0.2\n  attn_config: {attn_pdrop: 0.1, qk_ln: true, rope: false}\n"));
  for (const char* name : {"expansion_ratio", "no_bias", "emb_pdrop", "attn_config.qk_ln"})
    EXPECT_THAT(reasons, Contains(Key(std::string("model.") + name)));
  EXPECT_EQ(reasons.size(), 4u);
  EXPECT_THAT(left_out(converted("model: {name: hf_t5}\n")),
              Contains(Pair("model", HasSubstr("no model like hf_t5"))));
}

TEST(Foundry, FilesOfOtherProgramsAreRefused) {
  EXPECT_THROW(converted("jobs: {build: {steps: []}}\n"), UserError);
  EXPECT_EQ(converted("parameters: {max_duration: 7ba, optimizer: {name: adamw}}\n")
                .recipe()
                .at("train")
                .at("max_duration")
                .text(),
            "7ba");
}

TEST(Foundry, OptionsOfLoadingNeedAPath) {
  const RecipeDraft draft =
      converted("optimizer: {name: adamw}\nload_weights_only: true\nload_path: s3://b/x\n");
  EXPECT_FALSE(draft.has("checkpoint", "load_weights_only"));
  EXPECT_FALSE(draft.recipe().has("checkpoint")) << "no empty section";
  EXPECT_TRUE(converted("optimizer: {name: adamw}\nload_weights_only: true\nload_path: x\n")
                  .has("checkpoint", "load_weights_only"));
}

TEST(Foundry, LionHasTheWeightDecayOfTheFile) {
  const Setting optimizer =
      converted("optimizer: {name: decoupled_lionw, lr: 0.0001, betas: [0.9, 0.95], weight_decay: 1.0e-05}\n")
          .recipe()
          .at("optimizer");
  EXPECT_EQ(optimizer.at("kind").text(), "decoupled_lionw");
  EXPECT_DOUBLE_EQ(optimizer.at("weight_decay").number(), 1e-5);
  EXPECT_THAT(optimizer.at("betas").numbers(), ElementsAre(0.9, 0.95));
}

TEST(Foundry, AlibiIsAnAlgorithm) {
  const RecipeDraft draft =
      converted("max_seq_len: 64\nmodel: {name: mpt_causal_lm, attn_config: {alibi: true}}\n");
  const Setting alibi = draft.recipe().at("algorithms").array().at(0);
  EXPECT_EQ(alibi.at("kind").text(), "alibi");
  EXPECT_EQ(alibi.at("max_sequence_length").integer(), 64);
}

TEST(Foundry, AdaptersAreAnAlgorithm) {
  const std::string config =
      "  peft_config: {peft_type: LORA, task_type: CAUSAL_LM, r: 16, lora_alpha: 32, lora_dropout: 0.05, "
      "bias: none, target_modules: ";
  const RecipeDraft draft = converted("model:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: m\n" +
                                      config + "[q_proj, v_proj]}\n");
  EXPECT_THAT(left_out(draft), IsEmpty());
  const Setting lora = draft.recipe().at("algorithms").array().at(0);
  EXPECT_EQ(lora.at("kind").text(), "lora");
  EXPECT_EQ(lora.at("r").integer(), 16);
  EXPECT_EQ(lora.at("alpha").number(), 32);
  EXPECT_EQ(lora.at("dropout").number(), 0.05);
  EXPECT_THAT(lora.at("targets").texts(), ElementsAre("q_proj", "v_proj"));
  const RecipeDraft all = converted("model:\n  name: hf_causal_lm\n  pretrained_model_name_or_path: m\n" +
                                    config + "all-linear}\n");
  EXPECT_THAT(all.recipe().at("algorithms").array().at(0).at("targets").texts(), ElementsAre("all-linear"));
}

TEST(Foundry, AdaptersOfMptAreThoseOfGpt) {
  const RecipeDraft draft = converted(
      "model:\n  name: mpt_causal_lm\n  peft_config: {peft_type: LORA, r: 4, target_modules: [Wqkv]}\n");
  const Setting lora = draft.recipe().at("algorithms").array().at(0);
  EXPECT_EQ(lora.at("r").integer(), 4);
  EXPECT_FALSE(lora.has("targets"));
  EXPECT_THAT(left_out(draft), Contains(Key("model.peft_config.target_modules")));
  const RecipeDraft other = converted("model:\n  name: mpt_causal_lm\n  peft_config: {peft_type: IA3}\n");
  EXPECT_THAT(left_out(other), Contains(Key("model.peft_config")));
  EXPECT_FALSE(other.recipe().has("algorithms"));
}

TEST(Foundry, SecondsAreTimesAndAddressesOfStoresNoPaths) {
  const RecipeDraft draft = converted(
      "optimizer: {name: adamw}\ndist_timeout: 600\nload_path: s3://bucket/ep1\nsave_folder: runs\n");
  EXPECT_EQ(draft.recipe().at("train").at("hang_timeout").text(), "600sec");
  EXPECT_EQ(draft.recipe().at("checkpoint").at("save_folder").text(), "runs");
  EXPECT_THAT(left_out(draft), ElementsAre(Pair("load_path", HasSubstr("[remote] command"))));
}

TEST(Foundry, AStreamIsTheDatasetAndTheOthersAreLeftOut) {
  const RecipeDraft draft = converted(
      "train_loader:\n  name: text\n  dataset:\n    streams:\n      a: {local: x, remote: s3://b/x, split: "
      "t}\n"
      "      b: {local: y}\n    shuffle: true\n");
  const Setting train = draft.recipe().at("data").at("train");
  EXPECT_EQ(train.at("path").text(), "x/t");
  EXPECT_EQ(train.at("remote").text(), "s3://b/x/t");
  EXPECT_THAT(train.at("fetch").text(), HasSubstr("{source}"));
  EXPECT_THAT(left_out(draft), Contains(Pair("train_loader.dataset.streams", HasSubstr("mixture"))));
}

TEST(Foundry, ValuesThatTuttiDoesNotTakeAreLeftOut) {
  const auto reasons = left_out(
      converted("optimizer: {name: adalr_lion}\nscheduler: {name: cosine_with_warmup, t_warmup: soon}\n"
                "max_duration: 7\nprecision: fp4\ncallbacks: {no_such_thing: {}, early_stopper: {}}\n"));
  EXPECT_THAT(reasons.at("optimizer"), HasSubstr("no optimizer called adalr_lion"));
  EXPECT_THAT(reasons.at("scheduler.t_warmup"), HasSubstr("is a time"));
  EXPECT_THAT(reasons.at("precision"), HasSubstr("one of fp32"));
  EXPECT_THAT(reasons.at("callbacks.early_stopper"), HasSubstr("monitor is missing"));
  EXPECT_THAT(reasons, Contains(Key("callbacks.no_such_thing")));
  EXPECT_EQ(reasons.size(), 5u);
}

}  // namespace
}  // namespace tutti
