// Weights that PyTorch, safetensors and transformers saved (weights/make_weights.py) give the outputs of the
// client's own model.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/weights/weights.h"
#include "job/recipe_catalogs.h"
#include "models/zoo/catalog.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/golden/golden_file.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"
#include "training/trainee.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr double kTolerance = 1e-5;  // of the outputs' size

std::string weights_path(const std::string& name) { return own_path("weights/" + name); }

// A model whose weights are a file, with other keys of [model].
struct SavedModel {
  std::string file;
  std::string model;  // of expected.safetensors
  std::vector<std::pair<std::string, Setting::Value>> keys = {};
  std::string noted = {};
};

void PrintTo(const SavedModel& saved, std::ostream* out) { *out << saved.file; }

using Keys = std::vector<std::pair<std::string, Setting::Value>>;

Keys sizes_of(const std::string& model) {
  if (model == "resnet")
    return {{"kind", std::string("resnet")}, {"depth", int64_t{18}}, {"width", int64_t{2}}};
  if (model.starts_with("gpt2"))
    return {{"kind", std::string("gpt")}, {"vocab_size", int64_t{40}}, {"n_positions", int64_t{16}},
            {"n_embd", int64_t{16}},      {"n_layer", int64_t{2}},     {"n_head", int64_t{2}}};
  Keys keys{{"kind", std::string(model == "bert" ? "bert_mlm" : "bert_classification")},
            {"vocab_size", int64_t{40}},
            {"hidden_size", int64_t{16}},
            {"num_hidden_layers", int64_t{2}},
            {"num_attention_heads", int64_t{2}},
            {"intermediate_size", int64_t{24}},
            {"max_position_embeddings", int64_t{16}}};
  if (model != "bert") keys.emplace_back("num_classes", int64_t{3});
  return keys;
}

SampleSpec samples_of(const std::string& model) {
  if (model == "resnet") return {.shapes = {{"input", {3, 33, 33}}, {"target", {}}}, .classes = 5};
  SampleSpec spec{.shapes = {{"input_ids", {12}}, {"labels", {12}}},
                  .dtypes = {{"input_ids", at::kLong}, {"labels", at::kLong}}};
  if (model.starts_with("gpt2"))
    spec = {.shapes = {{"input", {12}}, {"target", {12}}},
            .dtypes = {{"input", at::kLong}, {"target", at::kLong}}};
  if (model == "bert_classification") spec.shapes["labels"] = {};
  return spec;
}

// A folder of transformers', with the sizes of its config.json.
Setting section_of_folder(const std::string& folder) {
  const std::string recipe = "[model]\nkind = \"hf\"\npath = \"" + weights_path(folder) +
                             "\"\n[data.train]\nkind = \"synthetic\"\nbatch_size = 2\n[optimizer]\nkind = "
                             "\"sgd\"\nlr = 0.1\n[train]\nmax_duration = \"1ba\"\n";
  return resolve_recipe(parse_recipe(recipe, own_path("recipe.toml"))).at("model");
}

void load(Trainee& trainee, const SavedModel& saved, Keys sizes, const SampleSpec& spec) {
  sizes.emplace_back("weights", weights_path(saved.file));
  sizes.insert(sizes.end(), saved.keys.begin(), saved.keys.end());
  const Catalog catalog = model_catalog();
  Setting recipe = section_with({{"model", section_with(sizes).value}});
  recipe.position.file = own_path("recipe.toml");
  const Setting model = resolve(recipe, std::span(&catalog, 1)).at("model");
  build(trainee, section_with({{"model", model.value}, {"optimizer", momentum_sgd().value}}), spec, 1);
}

class GoldenWeights : public testing::TestWithParam<SavedModel> {};

void expect_outputs_of_client(Trainee& trainee, const SavedModel& saved) {
  const auto expected = read_weights(weights_path("expected.safetensors"));
  const at::Tensor input = expected.at(saved.model + ".input"), output = expected.at(saved.model + ".output");
  const bool takes_ids = saved.model.starts_with("bert");
  const Batch batch = TensorTree::Children{{takes_ids ? "input_ids" : "input", input}};
  const at::NoGradGuard no_grad;
  const EvaluationMode evaluating(*trainee.model);
  const at::Tensor got = trainee.forward(batch).tensor();
  ASSERT_EQ(got.sizes(), output.sizes());
  const double difference = (got - output).abs().max().item<double>();
  EXPECT_LE(difference, kTolerance * output.abs().max().item<double>());
  EXPECT_THAT(trainee.weights_note, HasSubstr(saved.noted));
  if (saved.noted.empty()) EXPECT_EQ(trainee.weights_note, "");
}

TEST_P(GoldenWeights, GiveTheOutputsOfTheClient) {
  Trainee trainee;
  load(trainee, GetParam(), sizes_of(GetParam().model), samples_of(GetParam().model));
  expect_outputs_of_client(trainee, GetParam());
}

TEST(GoldenFolders, NameTheModelAndItsSizes) {
  for (const char* folder : {"gpt2", "gpt2_sharded", "bert", "bert_classification"}) {
    const std::string model = std::string(folder).starts_with("gpt2") ? "gpt2" : folder;
    const Setting section = section_of_folder(folder);
    Trainee trainee;
    build(trainee, section_with({{"model", section.value}, {"optimizer", momentum_sgd().value}}),
          samples_of(model), 1);
    expect_outputs_of_client(trainee, {folder, model});
  }
}

Setting::Value names(const std::vector<std::pair<std::string, Setting::Value>>& pairs) {
  return section_with(pairs).value;
}

INSTANTIATE_TEST_SUITE_P(
    All, GoldenWeights,
    testing::Values(
        SavedModel{"resnet.pth", "resnet"}, SavedModel{"resnet_ddp.pt", "resnet"},
        SavedModel{
            "resnet_renamed.safetensors",
            "resnet",
            {{"weights_rename", names({{"net.head.*", std::string("fc.*")}, {"net.*", std::string("*")}})}}},
        SavedModel{"gpt2", "gpt2"}, SavedModel{"gpt2/model.safetensors", "gpt2"},
        SavedModel{"gpt2_sharded", "gpt2"}, SavedModel{"gpt2_sharded/model.safetensors.index.json", "gpt2"},
        SavedModel{"gpt2_old.bin", "gpt2"}, SavedModel{"gpt2_half.safetensors", "gpt2_half"},
        SavedModel{"gpt2_linear.pt", "gpt2"}, SavedModel{"bert", "bert"},
        SavedModel{"bert_old.bin",
                   "bert",
                   {{"weights_ignore",
                     list_value({std::string("cls.seq_relationship"), std::string("bert.pooler")})}}},
        SavedModel{"bert_old.bin", "bert", {{"weights_strict", false}}, "not used of the file: 'bert.pooler"},
        SavedModel{"bert_classification", "bert_classification"}));

TEST(GoldenFolders, WithoutAConfigurationAreRefused) {
  EXPECT_THAT(message_of<UserError>([] { section_of_folder("nowhere"); }),
              AllOf(HasSubstr("recipe.toml:3: model.path = "), HasSubstr("it has no config.json")));
}

// A new head beside a trunk that was trained.
TEST(GoldenWeightsOfAnotherHead, AreAnErrorUnlessTheyAreIgnored) {
  SavedModel saved{"bert", "bert_classification", {}};
  const auto try_load = [&](Trainee& trainee) {
    load(trainee, saved, sizes_of("bert_classification"), samples_of("bert_classification"));
  };
  EXPECT_THAT(message_of<UserError>([&] {
                Trainee trainee;
                try_load(trainee);
              }),
              AllOf(HasSubstr("it holds no tensor 'bert.pooler.dense.weight', 'bert.pooler.dense.bias', "
                              "'classifier.weight' and 1 more, which the model has; it holds"),
                    HasSubstr(", which the model does not have; weights_rename, weights_ignore or")));
  saved.keys = {{"weights_strict", false}};
  Trainee trainee, fresh;
  try_load(trainee);
  saved = {"bert_classification",
           "bert_classification",
           {{"weights_ignore", list_value({std::string("classifier")})}}};
  try_load(fresh);
  EXPECT_THAT(trainee.weights_note, HasSubstr("not read, so as initialised: 'bert.pooler.dense.weight'"));
  EXPECT_THAT(fresh.weights_note,
              testing::EndsWith("not read, so as initialised: 'classifier.weight', 'classifier.bias'"));
}

}  // namespace
}  // namespace tutti
