#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/variable.h>

#include <fstream>

#include "io/json/json_setting.h"
#include "models/hub/config.h"
#include "models/layers/statistics_rows.h"
#include "models/zoo/bert.h"
#include "models/zoo/catalog.h"
#include "models/zoo/gpt.h"
#include "models/zoo/llama.h"
#include "models/zoo/mlp.h"
#include "models/zoo/resnet.h"
#include "models/zoo/resnet_cifar.h"
#include "models/zoo/vit.h"
#include "recipe/resolve.h"
#include "tests/golden/expect_near.h"
#include "tests/golden/golden_file.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

const BertOptions kGoldenBert{.vocab_size = 17,
                              .hidden_size = 8,
                              .num_hidden_layers = 2,
                              .num_attention_heads = 2,
                              .intermediate_size = 12,
                              .hidden_dropout_prob = 0.0,
                              .attention_probs_dropout_prob = 0.0,
                              .max_position_embeddings = 12,
                              .type_vocab_size = 3};

// The zoo's model of a config.json of transformers.
std::shared_ptr<Model> configured(const std::string& json) {
  const Scratch folder;
  std::ofstream(folder.path("config.json")) << json;
  const Setting asked(Setting::Table(), "model", {});
  const Setting section(zoo_section(read_json_object(folder.path("config.json")), asked), "model", {});
  return std::make_shared<Llama>(LlamaOptions::kind().read(resolve_section(model_catalog(), section, {})));
}

std::shared_ptr<Model> model_of(const GoldenCase& golden) {
  const std::string title = golden.text("title");
  if (golden.has("config")) return configured(golden.text("config"));
  if (title == "mlp")
    return std::make_shared<Mlp>(MlpOptions{.in_features = 12, .hidden = {9, 7}, .num_classes = 5});
  if (title == "resnet_cifar")
    return std::make_shared<ResNetCifar>(
        ResNetCifarOptions{.depth = 14, .width = 4, .in_channels = 3, .num_classes = 5});
  if (title == "resnet18" || title == "resnet50")
    return std::make_shared<ResNet>(
        ResNetOptions{.depth = std::stol(title.substr(6)), .width = 2, .num_classes = 5});
  if (title == "bert_mlm") return std::make_shared<BertForMaskedLm>(kGoldenBert);
  if (title == "bert_classification")
    return std::make_shared<BertForSequenceClassification>(kGoldenBert, 5, /*classifier_dropout=*/0.0);
  if (title == "vit")
    return std::make_shared<Vit>(VitOptions{.image_size = 12,
                                            .patch_size = 4,
                                            .num_layers = 2,
                                            .num_heads = 2,
                                            .hidden_dim = 8,
                                            .mlp_dim = 12,
                                            .num_classes = 5});
  if (title != "gpt") throw std::logic_error("no test knows the model " + title);
  return std::make_shared<Gpt>(
      GptOptions{.vocab_size = 17, .n_positions = 12, .n_embd = 16, .n_layer = 2, .n_head = 4});
}

// A model with the weights, and the batch, of a case that PyTorch computed.
class GoldenModel : public testing::TestWithParam<std::string> {
 protected:
  GoldenModel() : case_(own_path("models.h5"), GetParam()), model_(model_of(case_)) {
    materialise(*model_, 1);
    const at::NoGradGuard no_grad;
    for (const NamedParameter& named : parameters(*model_)) load(named.name, named.parameter->tensor);
    for (const NamedBuffer& named : buffers(*model_))
      if (named.buffer->persistent) load(named.name, named.buffer->tensor);
    for (const char* array : {"input", "target", "attention_mask", "token_type_ids"})
      if (case_.holds(std::string("in/") + array))
        batch_.set(array, case_.tensor(std::string("in/") + array));
  }

  void load(const std::string& name, const at::Tensor& into) {
    into.copy_(case_.tensor("in/weights/" + name));
  }

  GoldenCase case_;
  std::shared_ptr<Model> model_;
  Batch batch_;
};

TEST_P(GoldenModel, HasPyTorchsNames) {
  std::vector<std::string> names;
  for (const NamedParameter& named : parameters(*model_)) names.push_back(named.name);
  for (const NamedBuffer& named : buffers(*model_))
    if (named.buffer->persistent) names.push_back(named.name);
  EXPECT_THAT(names, testing::UnorderedElementsAreArray(case_.names("in/weights")));
}

TEST_P(GoldenModel, GivesPyTorchsLossAndGradients) {
  const Outputs outputs = model_->forward(batch_);
  const at::Tensor loss = model_->loss(outputs, batch_);
  expect_near(outputs.tensor().detach(), case_.tensor("out/outputs"), kOfOutputs, "outputs");
  expect_near(loss.detach(), case_.tensor("out/loss").reshape({}), kOfOutputs, "loss");
  loss.backward();
  expect_gradients_near(*model_, case_);
}

TEST_P(GoldenModel, GivesPyTorchsEvaluationOnceStatisticsAreApplied) {
  std::vector<RunningStatistics> found;
  const ForwardContext training{.training = true, .statistics = &found};
  set_context(*model_, &training);
  model_->forward(batch_);
  for (const RunningStatistics& statistics : found) apply(statistics);
  for (const NamedBuffer& named : buffers(*model_))
    if (named.buffer->persistent) case_.expect_close(named.buffer->tensor, "out/buffers/" + named.name);
  const ForwardContext evaluating{.training = false};
  set_context(*model_, &evaluating);
  expect_near(model_->eval_forward(batch_).tensor().detach(), case_.tensor("out/eval_outputs"), kOfOutputs,
              "outputs");
}

INSTANTIATE_TEST_SUITE_P(All, GoldenModel, testing::ValuesIn(golden_cases(own_path("models.h5"))),
                         [](const auto& info) {
                           return GoldenCase(own_path("models.h5"), info.param).text("title");
                         });

// "resnet50", then a line for each of its parameters and buffers: "  fc.weight [1000, 2048]".
TEST(GoldenResNet, HasTorchvisionsNamesAndShapes) {
  std::map<std::string, std::vector<std::string>> wanted;
  std::ifstream file(own_path("resnet_names.txt"));
  std::string depth;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("resnet"))
      depth = line.substr(6);
    else
      wanted[depth].push_back(line.substr(2));
  }
  EXPECT_EQ(wanted.size(), 5U);
  for (const auto& [layers, lines] : wanted) {
    ResNet model({.depth = std::stol(layers)});
    std::vector<std::string> found;
    for (const auto& one : parameters(model))
      found.push_back(one.name + ' ' + shape_text(one.parameter->tensor.sizes()));
    for (const auto& one : buffers(model))
      found.push_back(one.name + ' ' + shape_text(one.buffer->tensor.sizes()));
    EXPECT_THAT(found, testing::UnorderedElementsAreArray(lines)) << layers;
  }
}

}  // namespace
}  // namespace tutti
