#include "commands/export.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "commands/check.h"
#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/checkpoint_tensors.h"
#include "io/checkpoint/run_state.h"
#include "io/exported/archive.h"
#include "io/hdf5/hdf5_writer.h"
#include "io/json/json_setting.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/sample_checkpoint.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Tensors = std::map<std::string, at::Tensor>;

constexpr const char* kExportedImages = R"(
[data.train]
kind = "synthetic"
samples = 8
batch_size = 4
shape = [3, 32, 32]
[optimizer]
kind = "sgd"
lr = 0.1
[train]
max_duration = "3ba"
)";
constexpr const char* kExportedTokens = R"(
[model]
kind = "gpt"
vocab_size = 40
n_positions = 16
n_embd = 16
n_layer = 2
n_head = 2
[data.train]
kind = "synthetic"
targets = "sequence"
vocab = 40
samples = 8
batch_size = 4
shape = [12]
[optimizer]
kind = "sgd"
lr = 0.1
[train]
max_duration = "3ba"
)";

class ExportTest : public testing::Test {
 protected:
  void train(const std::string& recipe, int ranks = 1) {
    LocalRunOptions options;
    options.quiet = true;
    options.ranks = ranks;
    options.run_dir = run_;
    ASSERT_EQ(train_in_one_process(recipe_of(recipe), options).exit_code, 0);
  }
  Tensors exported(bool trained = false) {
    text_ = export_text({.path = run_, .to = file_, .trained = trained});
    return read_weights(file_);
  }
  std::string refused(const ExportOptions& options) {
    return message_of<UserError>([&] { export_text(options); });
  }

  Scratch folder_;
  PosixDisk disk_;
  std::string run_ = folder_.path("run"), file_ = folder_.path("out/model.safetensors"), text_;
};

std::string resnet_with(const std::string& algorithms) {
  return "[model]\nkind = \"resnet\"\ndepth = 18\nwidth = 2\n" + std::string(kExportedImages) + algorithms;
}

TEST_F(ExportTest, HasTheNamesBeforeSurgeryAndTheAverageThatEvaluationsUse) {
  train(resnet_with("[[algorithms]]\nkind = \"blurpool\"\nmin_channels = 1\n[[algorithms]]\nkind = "
                    "\"ema\"\nhalf_life = "
                    "\"2ba\"\nupdate_interval = \"1ba\"\n"),
        2);
  const Checkpoint checkpoint = find_checkpoint(disk_, run_, {});
  const CheckpointTensors saved(disk_, checkpoint);
  ASSERT_TRUE(saved.contains("model/layer2.0.conv1.conv.weight")) << "BlurPool changes the name";
  const Tensors averaged = exported(), trained = exported(true);
  EXPECT_TRUE(trained.at("layer2.0.conv1.weight").equal(read_all(saved, "model/layer2.0.conv1.conv.weight")));
  EXPECT_TRUE(averaged.at("layer2.0.conv1.weight")
                  .equal(read_all(saved, "algorithms/EMA/layer2.0.conv1.conv.weight")));
  EXPECT_FALSE(averaged.at("fc.weight").equal(trained.at("fc.weight")));
  const at::Tensor batches = read_all(saved, "model/bn1.num_batches_tracked");
  EXPECT_TRUE(trained.at("bn1.num_batches_tracked").equal(batches));
  EXPECT_EQ(averaged.size(), trained.size());
}

TEST_F(ExportTest, GoesBackIntoTheModel) {
  train(resnet_with(""));
  const Tensors first = exported();
  EXPECT_EQ(text_, "written to " + file_ + ": " + std::to_string(first.size()) + " tensors of " + run_ +
                       "/checkpoints/ep1-ba3\n");
  std::filesystem::rename(run_, folder_.path("earlier"));
  train("[model]\nkind = \"resnet\"\ndepth = 18\nwidth = 2\nweights = \"" + file_ + "\"\n" +
        std::string(kExportedImages) + "[checkpoint]\ninterval = \"0ba\"\n");
}

// The callback hf_checkpointer with these keys.
std::string hub_callback(const std::string& keys) {
  return "[[callbacks]]\nkind = \"hf_checkpointer\"\nsave_folder = \"hub\"\n" + keys;
}

TEST_F(ExportTest, OfTheCallbackIsTheCommands) {
  train(kExportedTokens + hub_callback("save_interval = \"2ba\"\n"), 2);
  const std::string out = folder_.path("hub"), written = run_ + "/hub/huggingface/ba";
  export_text({.path = run_, .to_hf = out});
  EXPECT_EQ(write_recipe(read_json_object(written + "3/config.json")),
            write_recipe(read_json_object(out + "/config.json")));
  const Tensors weights = read_weights(out + "/model.safetensors"),
                half = read_weights(written + "2/model.safetensors");
  const Tensors last = read_weights(written + "3/model.safetensors");
  ASSERT_EQ(last.size(), weights.size());
  ASSERT_EQ(half.size(), weights.size());
  for (const auto& [name, tensor] : weights) EXPECT_TRUE(tensor.equal(last.at(name))) << name;
  EXPECT_FALSE(half.at("transformer.wte.weight").equal(last.at("transformer.wte.weight")));
}

TEST_F(ExportTest, AFolderHasTheTokenizerOfTheTexts) {
  const std::string tokenizer = TUTTI_SOURCE_DIR "/tests/golden/tokenizers/gpt2.json";
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += "{\"text\": \"In the beginning God created " + std::to_string(i) + "\"}\n";
  write_text(folder_.path("a.jsonl"), lines);
  std::string recipe = kExportedTokens;
  recipe.replace(recipe.find("vocab_size = 40"), 15, "vocab_size = 960");
  const std::size_t data = recipe.find("[data.train]"), optimizer = recipe.find("[optimizer]");
  recipe.replace(data, optimizer - data,
                 "[data.train]\nkind = \"text\"\npath = \"" + folder_.path("a.jsonl") + "\"\ntokenizer = \"" +
                     tokenizer +
                     "\"\nadd_eos_token = false\nsequence_length = 12\nbatch_size = 4\ncache = \"" +
                     folder_.path("cache") + "\"\n");
  train(recipe + hub_callback("save_interval = \"3ba\"\n"));
  export_text({.path = run_, .to_hf = folder_.path("hub")});
  EXPECT_EQ(read_text(folder_.path("hub") + "/tokenizer.json"), read_text(tokenizer));
  EXPECT_EQ(read_text(run_ + "/hub/huggingface/ba3/tokenizer.json"), read_text(tokenizer));
}

TEST_F(ExportTest, OfTheCallbackMayHaveHalfTheBits) {
  train(kExportedTokens + hub_callback("save_interval = \"3ba\"\nprecision = \"bfloat16\"\n"));
  const std::string written = run_ + "/hub/huggingface/ba3";
  EXPECT_EQ(read_json_object(written + "/config.json").at("torch_dtype").text(), "bfloat16");
  const Tensors whole = exported(), halves = read_weights(written + "/model.safetensors");
  ASSERT_EQ(halves.size(), whole.size());
  for (const auto& [name, tensor] : halves)
    EXPECT_TRUE(tensor.equal(whole.at(name).to(at::kBFloat16))) << name;
}

// Of parts that ranks have, and of the average that evaluations use.
TEST_F(ExportTest, OfTheCallbackIsTheCommandsForABertInPartsWithAnAverage) {
  const std::string data = folder_.path("data.h5");
  write_hdf5(disk_, data,
             {hdf5_array("input_ids", at::arange(96, at::kLong).remainder(40).view({8, 12})),
              hdf5_array("labels", at::arange(8, at::kLong).remainder(3))});
  const std::string recipe =
      "[model]\nkind = \"bert_classification\"\nvocab_size = 40\nhidden_size = 16\nnum_hidden_layers = 1\n"
      "num_attention_heads = 2\nintermediate_size = 16\nmax_position_embeddings = 16\nnum_classes = 3\n"
      "[data.train]\nkind = \"hdf5\"\nbatch_size = 4\npath = \"" +
      data +
      "\"\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[train]\nmax_duration = \"3ba\"\n"
      "[sharding]\nstrategy = \"full\"\n"
      "[[algorithms]]\nkind = \"ema\"\nhalf_life = \"2ba\"\nupdate_interval = \"1ba\"\n";
  train(recipe + hub_callback("save_interval = \"3ba\"\n"), 2);
  const std::string out = folder_.path("hub"), written = run_ + "/hub/huggingface/ba3";
  export_text({.path = run_, .to_hf = out});
  const Setting config = read_json_object(written + "/config.json");
  EXPECT_EQ(config.at("id2label").table().size(), 3);
  EXPECT_EQ(write_recipe(config), write_recipe(read_json_object(out + "/config.json")));
  const Tensors expected = read_weights(out + "/model.safetensors"),
                given = read_weights(written + "/model.safetensors"), trained = exported(true);
  ASSERT_EQ(given.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(tensor.equal(given.at(name))) << name;
  EXPECT_FALSE(given.at("classifier.weight").equal(trained.at("classifier.weight")));
  std::filesystem::rename(run_, folder_.path("with_callback"));
  train(recipe, 2);
  for (const auto& [name, tensor] : exported(true)) EXPECT_TRUE(tensor.equal(trained.at(name))) << name;
}

// The program has a weight under two names, and a layer that is not trained.
TEST_F(ExportTest, OfAProgramHasTiedWeightsUnderAllTheirNames) {
  const std::string program = TUTTI_SOURCE_DIR "/tests/golden/exported/tied.pt2";
  train("[model]\nkind = \"exported\"\npath = \"" + program +
        "\"\n[data.train]\nkind = \"synthetic\"\ntargets = \"sequence\"\nvocab = 7\nsamples = 8\n"
        "batch_size = 4\nshape = [5]\n[optimizer]\nkind = \"sgd\"\nlr = 0.1\n[train]\nmax_duration = "
        "\"3ba\"\n");
  const Tensors weights = exported();
  ASSERT_THAT(weights,
              testing::UnorderedElementsAre(testing::Key("tokens.weight"), testing::Key("head.weight"),
                                            testing::Key("fixed.weight"), testing::Key("fixed.bias")));
  EXPECT_TRUE(weights.at("head.weight").equal(weights.at("tokens.weight")));
  const auto stored = [&](const std::string& name) {
    at::Tensor tensor = at::empty_like(weights.at(name));
    exported::Archive(program).read(name, tensor);
    return tensor;
  };
  EXPECT_FALSE(weights.at("tokens.weight").equal(stored("tokens.weight")));
  EXPECT_TRUE(weights.at("fixed.weight").equal(stored("fixed.weight")));
}

TEST_F(ExportTest, OfTwoTensorsWithOneNameBeforeSurgeryIsRefused) {
  RunState state;
  state.names_before_surgery = {{"0.conv.weight", "0.weight"}};
  write_checkpoint(disk_, run_, {{"model/0.weight", at::ones({2})}, {"model/0.conv.weight", at::ones({2})}},
                   1, state.to_json());
  EXPECT_THAT(refused({.path = run_, .to = file_}), HasSubstr("two tensors would have the name '0.weight'"));
}

TEST_F(ExportTest, OfTheCallbackNeedsAModelOfTransformers) {
  const auto refusal = [](const std::string& recipe) {
    return message_of<UserError>([&] { check_text(recipe_of(recipe), {.steps = 0}); });
  };
  const std::string callback = hub_callback("save_interval = \"1ep\"\n");
  EXPECT_THAT(refusal(resnet_with(callback)), HasSubstr("have no such model"));
  EXPECT_THAT(
      refusal(kExportedTokens + ("[[algorithms]]\nkind = \"alibi\"\nmax_sequence_length = 16\n" + callback)),
      HasSubstr("hf_checkpointer"));
}

TEST_F(ExportTest, AConfigIsBlamedForItsValuesAndForDefaults) {
  const std::string config = folder_.path("config.json"), begin = kExportedTokens;
  const std::string recipe = "[model]\nkind = \"hf\"\npath = \"" + folder_.path() + "\"\n" +
                             begin.substr(begin.find("[data.train]"));
  const auto refusal = [&](const std::string& keys) {
    write_text(config, "{\"hidden_size\": 16, \"num_hidden_layers\": 1, \"vocab_size\": 40, " + keys + "}");
    return message_of<UserError>([&] { check_text(recipe_of(recipe), {.steps = 0}); });
  };
  EXPECT_THAT(refusal("\"model_type\": \"llama\", \"num_attention_heads\": 3"),
              HasSubstr(config + ": num_attention_heads = 3: "));
  EXPECT_THAT(refusal("\"model_type\": \"qwen2\", \"num_attention_heads\": 4"),
              HasSubstr(config + ": model.num_key_value_heads = 32: "))
      << "transformers' default";
  EXPECT_THAT(refusal("\"model_type\": \"bert\""), HasSubstr(config + ": model.num_attention_heads = 12: "))
      << "the recipe's default";
}

TEST_F(ExportTest, IsAFolderOfHuggingFaces) {
  train(kExportedTokens);
  const std::string out = folder_.path("hub");
  export_text({.path = run_, .to_hf = out});
  const Setting config = read_json_object(out + "/config.json");
  EXPECT_EQ(config.at("model_type").text(), "gpt2");
  EXPECT_EQ(config.at("n_embd").integer(), 16);
  const CheckpointTensors saved(disk_, find_checkpoint(disk_, run_, {}), kModelPrefix);
  const Tensors weights = read_weights(out + "/model.safetensors");
  EXPECT_EQ(weights.size(), saved.entries().size());
  for (const auto& [name, tensor] : weights) EXPECT_TRUE(tensor.equal(read_all(saved, name))) << name;
}

TEST_F(ExportTest, OfAModelThatTransformersDoNotHaveIsRefused) {
  train(resnet_with(""));
  EXPECT_THAT(refused({.path = run_, .to_hf = folder_.path("hub")}),
              HasSubstr("have no such model; they have those of gpt, llama, bert_mlm,"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("hub")));
}

TEST_F(ExportTest, OfAModelThatSurgeryChangedIsRefused) {
  train(std::string(kExportedTokens) + "[[algorithms]]\nkind = \"alibi\"\nmax_sequence_length = 16\n");
  EXPECT_THAT(refused({.path = run_, .to_hf = folder_.path("hub")}),
              HasSubstr("the model was changed by Alibi, which the hub's models do not have"));
}

TEST_F(ExportTest, WrongNamesAreRefused) {
  train(resnet_with(""));
  EXPECT_THAT(refused({.path = run_, .to = folder_.path("model.pt")}),
              HasSubstr("--to = \"" + folder_.path("model.pt") + "\": expected the name of a .safetensors"));
  EXPECT_THAT(refused({.path = folder_.path("nowhere"), .to = file_}), HasSubstr("there is no such folder"));
  EXPECT_THAT(
      refused({.path = run_}),
      HasSubstr("export needs one of --to FILE.safetensors, --to-hf DIR, --to-torch FILE.pt and --to-peft"));
}

}  // namespace
}  // namespace tutti
