// LoRA in whole runs, and adapters of PEFT's (tests/golden/make_lora.py).

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "commands/check.h"
#include "commands/export.h"
#include "commands/generate.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "commands/predict.h"
#include "io/hdf5/hdf5_writer.h"
#include "io/json/json_setting.h"
#include "job/recipe_catalogs.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;

constexpr double kTolerance = 1e-5;  // of the values' size

struct Client {
  std::string name, options;  // of the adapter
};
void PrintTo(const Client& client, std::ostream* out) { *out << client.name; }

const Client kGpt2{"gpt2", "r = 3\nalpha = 5\nuse_rslora = true\ntargets = ['c_attn', 'c_proj']\n"};
const Client kLlama{"llama", "r = 4\nalpha = 6\n"};

void expect_close(const at::Tensor& got, const at::Tensor& wanted, const std::string& what) {
  ASSERT_EQ(got.sizes(), wanted.sizes()) << what;
  EXPECT_LE((got - wanted).abs().max().item<double>(), kTolerance * wanted.abs().max().item<double>())
      << what;
}

class LoraRun : public testing::TestWithParam<Client> {
 protected:
  std::string golden(const std::string& file) const {
    return std::string(TUTTI_SOURCE_DIR) + "/tests/golden/lora/" + client_.name + '/' + file;
  }
  std::string text(const std::string& lora, const std::string& more = "") const {
    const std::string data = "kind = 'hdf5'\npath = '" + golden("tokens.h5") + "'\ngroup = 'train'\n";
    return "seed = 3\n[model]\nkind = 'hf'\npath = '" + golden("base") + "'\n[data.train]\n" + data +
           "batch_size = 4\n[data.eval]\n" + data + "[optimizer]\nkind = 'adamw'\nlr = 0.01\n[train]\n" +
           "max_duration = '5ba'\n" + more + "[[algorithms]]\nkind = 'lora'\n" + lora;
  }
  std::string of_adapter() const { return client_.options + "adapter = '" + golden("adapter") + "'\n"; }
  void train(const std::string& recipe, const std::string& run, int ranks = 1) const {
    LocalRunOptions options;
    options.quiet = true;
    options.ranks = ranks;
    options.run_dir = run;
    ASSERT_EQ(train_in_one_process(recipe_of(recipe), options).exit_code, 0);
  }
  at::Tensor predicted(const std::string& recipe, const std::string& run = "") const {
    const std::string out = folder_.path("out.h5");
    predict_text(recipe_of(recipe), {.checkpoint = run, .out = out});
    return read_all(*open_weights(disk_, out), "output");
  }
  Tensors weights(const std::string& path) const { return read_weights(path); }

  const Client& client_ = GetParam();
  Scratch folder_;
  PosixDisk disk_;
  std::string run_ = folder_.path("run");
};

TEST_P(LoraRun, AnAdapterOfPeftGivesItsOutputs) {
  expect_close(predicted(text(of_adapter())), weights(golden("expected.safetensors")).at("output"), "output");
}

TEST_P(LoraRun, GoesBackAsItCameAndIsMergedAsPeftDoes) {
  train(text(of_adapter(), "[scheduler]\nkind = 'constant'\nalpha = 0.0\n"), run_);
  const std::string adapter = folder_.path("adapter"), merged = folder_.path("merged.safetensors");
  export_text({.path = run_, .to_peft = adapter});
  const Tensors theirs = weights(golden("adapter/adapter_model.safetensors"));
  const Tensors ours = weights(adapter + "/adapter_model.safetensors");
  ASSERT_EQ(ours.size(), theirs.size());
  for (const auto& [name, tensor] : theirs) EXPECT_TRUE(tensor.equal(ours.at(name))) << name;
  const Setting config = read_json_object(adapter + "/adapter_config.json");
  const Setting their_config = read_json_object(golden("adapter/adapter_config.json"));
  for (const char* key :
       {"peft_type", "task_type", "r", "lora_alpha", "fan_in_fan_out", "use_rslora", "bias"})
    EXPECT_EQ(config.at(key).toml(), their_config.at(key).toml()) << key;
  EXPECT_THAT(config.at("target_modules").texts(),
              testing::UnorderedElementsAreArray(their_config.at("target_modules").texts()));

  export_text({.path = run_, .to = merged});
  const Tensors base = weights(golden("base/model.safetensors")), all = weights(merged);
  for (const auto& [name, tensor] : base) EXPECT_TRUE(all.contains(name)) << name;
  ASSERT_EQ(all.size(), base.size()) << "no tensor of an adapter";
  for (const auto& [name, tensor] : weights(golden("expected.safetensors")))
    if (name != "output") expect_close(all.at(name.substr(7)), tensor, name);
  export_text({.path = run_, .to_hf = folder_.path("hub")});
  EXPECT_EQ(weights(folder_.path("hub/model.safetensors")).size(), base.size());
}

// From parts that ranks have, and of the average that evaluations use.
TEST_P(LoraRun, TheCallbackWritesTheAdapterThatTheCommandDoes) {
  train(text(of_adapter(),
             "[sharding]\nstrategy = 'full'\n[[algorithms]]\nkind = 'ema'\nhalf_life = '2ba'\n"
             "update_interval = '1ba'\n[[callbacks]]\nkind = 'hf_checkpointer'\nsave_folder = 'hub'\n"
             "save_interval = '5ba'\n"),
        run_, 2);
  const std::string expected = folder_.path("adapter"), written = run_ + "/hub/huggingface/ba5";
  export_text({.path = run_, .to_peft = expected});
  EXPECT_EQ(read_text(written + "/adapter_config.json"), read_text(expected + "/adapter_config.json"));
  const Tensors wanted = weights(expected + "/adapter_model.safetensors");
  const Tensors found = weights(written + "/adapter_model.safetensors");
  ASSERT_EQ(found.size(), wanted.size());
  for (const auto& [name, tensor] : wanted) EXPECT_TRUE(tensor.equal(found.at(name))) << name;
  EXPECT_FALSE(std::filesystem::exists(written + "/config.json"));
}

TEST_P(LoraRun, TrainsAdaptersAloneAndTheBaseStaysAsItIs) {
  train(text(of_adapter()), run_);
  const Checkpoint checkpoint = find_checkpoint(disk_, run_, {});
  const CheckpointTensors saved(disk_, checkpoint);
  const Tensors base = weights(golden("base/model.safetensors"));
  const Tensors before = weights(golden("adapter/adapter_model.safetensors"));
  for (const auto& [name, tensor] : base) EXPECT_TRUE(tensor.equal(read_all(saved, "model/" + name))) << name;
  for (const auto& [name, tensor] : before)
    EXPECT_FALSE(tensor.equal(read_all(saved, "model/" + name.substr(17)))) << name;
  for (const auto& [name, entry] : saved.entries())
    EXPECT_TRUE(!name.starts_with("optimizers/") || name.find(".lora_") != std::string::npos) << name;
  int64_t trained = 0;
  for (const auto& [name, tensor] : before) trained += tensor.numel();
  EXPECT_THAT(inspect_text(run_), HasSubstr(std::to_string(trained) + " numbers of the model are trained"));
  EXPECT_THAT(check_text(resolve_recipe(recipe_of(text(of_adapter())))),
              HasSubstr(std::to_string(trained) + " trained"));
  EXPECT_NE(generate_text({.path = run_, .prompt = "3 4", .length = 3}), "");
}

// Each rank reads its rows of the adapter.
TEST_P(LoraRun, EveryStrategyTrainsToTheSameBits) {
  for (const std::string precision : {"fp32", "amp_bf16"}) {
    std::set<std::string> digests;
    for (const std::string strategy : {"none", "optimizer", "gradients", "full", "hybrid"}) {
      const std::string sharding =
          "[sharding]\nstrategy = '" + strategy + "'\n" + (strategy == "hybrid" ? "shard_size = 2\n" : "");
      const std::string run = folder_.path(precision + strategy);
      train(text(of_adapter(), "precision = '" + precision + "'\n" + sharding), run, 4);
      digests.insert(inspect_digest(run));
    }
    EXPECT_EQ(digests.size(), 1U) << precision;
  }
}

TEST_P(LoraRun, TheExportedAdapterAndTheMergedWeightsGiveTheRunsOutputs) {
  train(text(of_adapter()), run_);
  const at::Tensor expected = predicted(text(of_adapter()), run_);
  const std::string adapter = folder_.path("adapter"), hub = folder_.path("hub");
  export_text({.path = run_, .to_peft = adapter});
  export_text({.path = run_, .to_hf = hub});
  EXPECT_TRUE(predicted(text(client_.options + "adapter = '" + adapter + "'\n")).equal(expected));
  std::string plain = text("");
  plain.erase(plain.find("[[algorithms]]"));
  plain.replace(plain.find(golden("base")), golden("base").size(), hub);
  expect_close(predicted(plain), expected, "merged");
}

TEST_P(LoraRun, AnotherRecipeThanTheAdaptersIsAnError) {
  const auto refused = [&](const std::string& options) {
    return message_of<UserError>(
        [&] { predicted(text(options + "adapter = '" + golden("adapter") + "'\n")); });
  };
  EXPECT_THAT(refused("r = 2\n"), HasSubstr("the recipe has r = 2; give it this value"));
  EXPECT_THAT(refused("r = 4\nalpha = 7\n"), HasSubstr("the recipe has"));
  std::string fewer = client_.options, more = client_.options;
  if (client_.name == "llama") {
    fewer += "targets = ['q_proj']\n";
    more += "targets = ['all-linear']\n";
  } else {
    fewer.replace(fewer.find(", 'c_proj'"), 10, "");
    more.replace(more.find("'c_proj'"), 8, "'c_proj', 'c_fc'");
  }
  EXPECT_THAT(refused(fewer), HasSubstr("is of no layer among the recipe's targets and modules_to_save"));
  EXPECT_THAT(refused(more), HasSubstr("which the recipe's targets need"));
}

TEST_P(LoraRun, AnAdapterOfOtherWeightsThanTheBasesIsAnError) {
  const std::string adapter = folder_.path("adapter");
  std::filesystem::copy(golden("adapter"), adapter);
  const std::string config = read_text(adapter + "/adapter_config.json");
  const auto predict_with = [&](const std::string& key, const std::string& was, const std::string& is) {
    std::string changed = config;
    changed.replace(changed.find(key + was), key.size() + was.size(), key + is);
    write_text(adapter + "/adapter_config.json", changed);
    predicted(text(client_.options + "adapter = '" + adapter + "'\n"));
  };
  const std::string start = "\"init_lora_weights\": ", tokens = "\"alora_invocation_tokens\": ";
  for (const char* way : {"\"pissa_niter_4\"", "\"olora\"", "\"corda\"", "\"loftq\""})
    EXPECT_THAT(message_of<UserError>([&] { predict_with(start, "true", way); }),
                HasSubstr(std::string("init_lora_weights = ") + way));
  predict_with(start, "true", "\"gaussian\"");
  EXPECT_THAT(message_of<UserError>([&] { predict_with(tokens, "null", "[5]"); }),
              HasSubstr("act on all tokens"));
}

INSTANTIATE_TEST_SUITE_P(Clients, LoraRun, testing::Values(kGpt2, kLlama),
                         [](const auto& info) { return info.param.name; });

class LoraExport : public testing::Test {
 protected:
  Scratch folder_;
};

TEST_F(LoraExport, OfARunWithoutLoraIsAnError) {
  LocalRunOptions options;
  options.quiet = true;
  options.run_dir = folder_.path("run");
  train_in_one_process(recipe_of("[model]\nkind = 'mlp'\n[data.train]\nkind = 'synthetic'\nsamples = 8\n"
                                 "batch_size = 4\nshape = [6]\n[optimizer]\nkind = 'sgd'\nlr = 0.1\n[train]\n"
                                 "max_duration = '1ba'\n"),
                       options);
  EXPECT_THAT(message_of<UserError>(
                  [&] { export_text({.path = options.run_dir, .to_peft = folder_.path("adapter")}); }),
              HasSubstr("the run has no LoRA, whose adapters PEFT reads"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("adapter")));
}

TEST_F(LoraExport, WholeModulesAreBesideTheAdapters) {
  PosixDisk disk;
  const std::string data = folder_.path("data.h5");
  write_hdf5(disk, data,
             {hdf5_array("input_ids", at::arange(48, at::kLong).remainder(12).view({8, 6})),
              hdf5_array("labels", at::arange(8, at::kLong).remainder(3))});
  LocalRunOptions options;
  options.quiet = true;
  options.run_dir = folder_.path("run");
  train_in_one_process(
      recipe_of("[model]\nkind = 'bert_classification'\nvocab_size = 12\nhidden_size = 8\nnum_classes = 3\n"
                "num_hidden_layers = 1\nnum_attention_heads = 2\nintermediate_size = 12\n"
                "max_position_embeddings = 8\n[data.train]\nkind = 'hdf5'\nbatch_size = 4\npath = '" +
                data +
                "'\n[optimizer]\nkind = 'adamw'\nlr = 0.1\n[train]\nmax_duration = '2ba'\n[[algorithms]]\n"
                "kind = 'lora'\nr = 2\ntargets = ['dense']\nmodules_to_save = ['pooler', 'classifier']\n"),
      options);
  const std::string adapter = folder_.path("adapter");
  export_text({.path = options.run_dir, .to_peft = adapter});
  const auto tensors = read_weights(adapter + "/adapter_model.safetensors");
  EXPECT_EQ(tensors.size(), 6U + 4U);
  EXPECT_TRUE(tensors.contains("base_model.model.classifier.weight"));
  const Setting config = read_json_object(adapter + "/adapter_config.json");
  EXPECT_THAT(config.at("modules_to_save").texts(),
              testing::UnorderedElementsAre("bert.pooler.dense", "classifier"));
  const std::string layer = "bert.encoder.layer.0.";
  EXPECT_THAT(config.at("target_modules").texts(),
              testing::UnorderedElementsAre(layer + "attention.output.dense", layer + "intermediate.dense",
                                            layer + "output.dense"))
      << "whole names: that of the pooler ends in dense, too";
  EXPECT_FALSE(config.has("task_type"));
}

}  // namespace
}  // namespace tutti
