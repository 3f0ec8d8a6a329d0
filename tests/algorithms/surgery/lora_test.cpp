#include "algorithms/surgery/lora.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/layers/linear.h"
#include "models/zoo/bert.h"
#include "models/zoo/gpt.h"
#include "models/zoo/llama.h"
#include "models/zoo/mlp.h"
#include "runtime/error.h"
#include "tests/runtime/scratch.h"
#include "training/state.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::SizeIs;

Gpt gpt_of_two_blocks() {
  return Gpt({.vocab_size = 12, .n_positions = 8, .n_embd = 8, .n_layer = 2, .n_head = 2});
}

Llama llama_of_two_blocks() {
  return Llama({.vocab_size = 12,
                .hidden_size = 8,
                .intermediate_size = 12,
                .num_hidden_layers = 2,
                .num_attention_heads = 2,
                .max_position_embeddings = 8});
}

std::vector<std::string> trained(Layer& model) {
  std::vector<std::string> names;
  for (const auto& one : parameters(model))
    if (one.parameter->trained) names.push_back(one.name);
  return names;
}

at::Tensor& tensor_of(Layer& model, const std::string& name) {
  for (const auto& one : parameters(model))
    if (one.name == name) return one.parameter->tensor;
  throw UserError("no " + name);
}

TEST(LoraTest, ActsAtInitAndReadsAnAdapterBeforeLoad) {
  const Lora plain, with({.adapter = "folder"});
  for (std::size_t e = 0; e < kEvents; ++e) {
    const auto event = static_cast<Event>(e);
    EXPECT_EQ(plain.match(event, State()), event == Event::kInit);
    EXPECT_EQ(with.match(event, State()), event == Event::kInit || event == Event::kBeforeLoad);
  }
  EXPECT_TRUE(plain.needs().required_on_load);
}

TEST(LoraTest, TargetsArePeftsUnlessOthersAreNamed) {
  Gpt gpt = gpt_of_two_blocks();
  EXPECT_THAT(apply_lora(gpt), ElementsAre("transformer.h.0.attn.c_attn", "transformer.h.1.attn.c_attn"));
  Llama llama = llama_of_two_blocks(), one = llama_of_two_blocks(), all = llama_of_two_blocks();
  EXPECT_THAT(apply_lora(llama),
              ElementsAre("model.layers.0.self_attn.q_proj", "model.layers.0.self_attn.v_proj",
                          "model.layers.1.self_attn.q_proj", "model.layers.1.self_attn.v_proj"));
  EXPECT_THAT(apply_lora(one, {.targets = {"*.1.mlp.*"}}), AllOf(SizeIs(3), Each(HasSubstr(".1.mlp."))));
  EXPECT_THAT(apply_lora(all, {.targets = {"all-linear"}}),
              AllOf(SizeIs(2 * 7), Not(Contains(HasSubstr("lm_head")))));
  BertForMaskedLm bert(
      {.vocab_size = 12, .hidden_size = 8, .num_hidden_layers = 1, .num_attention_heads = 2});
  EXPECT_THAT(apply_lora(bert), ElementsAre(EndsWith("self.query"), EndsWith("self.value")));
}

TEST(LoraTest, TheWeightsOfTheBaseKeepTheirNamesAndValues) {
  Gpt plain = gpt_of_two_blocks(), adapted = gpt_of_two_blocks();
  note_names(adapted);
  apply_lora(adapted, {.r = 3, .targets = {"c_attn", "c_proj"}});
  materialise(plain, 3);
  materialise(adapted, 3);
  for (const auto& one : parameters(plain))
    EXPECT_TRUE(one.parameter->tensor.equal(tensor_of(adapted, one.name))) << one.name;
  EXPECT_EQ(parameters(adapted).size(), parameters(plain).size() + 2 * 3 * 2);
  const Batch batch = TensorTree::Children{{"input", at::arange(4, at::kLong).view({1, 4})}};
  EXPECT_TRUE(plain.forward(batch).tensor().equal(adapted.forward(batch).tensor())) << "B is zero";
}

TEST(LoraTest, AStartsAsALinearsWeight) {
  Llama model = llama_of_two_blocks();
  apply_lora(model, {.r = 64});
  materialise(model, 3);
  const at::Tensor a = tensor_of(model, "model.layers.0.self_attn.q_proj.lora_A.weight").detach();
  const double bound = 1 / std::sqrt(8.0);  // kaiming_uniform with a = sqrt(5): sqrt(6 / (1 + 5) / fan_in)
  EXPECT_LE(a.abs().max().item<double>(), bound);
  EXPECT_GT(a.abs().max().item<double>(), 0.95 * bound);
  EXPECT_NEAR(a.std().item<double>(), bound / std::sqrt(3.0), 0.03);
}

TEST(LoraTest, AddsTheScaledProductOfBothHalves) {
  for (const bool use_rslora : {false, true}) {
    Gpt model = gpt_of_two_blocks();
    apply_lora(model, {.r = 4, .alpha = 6, .targets = {"*.0.attn.c_attn"}, .use_rslora = use_rslora});
    materialise(model, 1);
    const at::NoGradGuard no_grad;
    const std::string name = "transformer.h.0.attn.c_attn";
    tensor_of(model, name + ".lora_B.weight").normal_();
    Layer* layer = nullptr;
    for (const auto& [path, one] : layers(model))
      if (path == name && one->kind() == std::string("LoraLayer")) layer = one;
    ASSERT_NE(layer, nullptr);
    const at::Tensor x = at::randn({2, 3, 8});
    const at::Tensor change = tensor_of(model, name + ".lora_B.weight")
                                  .matmul(tensor_of(model, name + ".lora_A.weight"))
                                  .mul(use_rslora ? 6.0 / 2 : 6.0 / 4);
    const at::Tensor expected =
        x.matmul(tensor_of(model, name + ".weight") + change.t()) + tensor_of(model, name + ".bias");
    EXPECT_TRUE(at::allclose(layer->forward(x).tensor(), expected, 1e-4, 1e-5));
  }
}

TEST(LoraTest, DropsNumbersOfTheAdaptersInputInTraining) {
  Gpt model = gpt_of_two_blocks();
  apply_lora(model, {.dropout = 0.5});
  materialise(model, 1);
  const at::NoGradGuard no_grad;
  for (int i = 0; i < 2; ++i)
    tensor_of(model, "transformer.h." + std::to_string(i) + ".attn.c_attn.lora_B.weight").normal_();
  const Batch batch = TensorTree::Children{{"input", at::arange(4, at::kLong).view({1, 4})}};
  EXPECT_FALSE(model.forward(batch).tensor().equal(model.forward(batch).tensor()));
  const EvaluationMode evaluating(model);
  EXPECT_TRUE(model.forward(batch).tensor().equal(model.forward(batch).tensor()));
}

TEST(LoraTest, OnlyAdaptersAndSavedModulesAreTrained) {
  Llama model = llama_of_two_blocks();
  apply_lora(model, {.targets = {"*.0.self_attn.q_proj"}, .modules_to_save = {"lm_head", "model.layers.1"}});
  EXPECT_THAT(trained(model),
              AllOf(Contains("model.layers.0.self_attn.q_proj.lora_A.weight"),
                    Contains("model.layers.0.self_attn.q_proj.lora_B.weight"), Contains("lm_head.weight"),
                    Contains("model.layers.1.mlp.up_proj.weight"), SizeIs(2 + 1 + 9)));
  materialise(model, 1);
  EXPECT_FALSE(tensor_of(model, "model.norm.weight").requires_grad());
  EXPECT_TRUE(tensor_of(model, "lm_head.weight").requires_grad());
}

TEST(LoraTest, SavedModulesAreTrainedEvenIfTheyAreFrozen) {
  Llama model = llama_of_two_blocks();
  for (const NamedParameter& one : parameters(model)) one.parameter->trained = false;
  apply_lora(model, {.targets = {"*.0.self_attn.q_proj"}, .modules_to_save = {"lm_head"}});
  EXPECT_THAT(trained(model), AllOf(Contains("lm_head.weight"), SizeIs(2 + 1)));
}

TEST(LoraTest, NamesThatNothingHasAreErrors) {
  Gpt gpt = gpt_of_two_blocks();
  const auto refused = [&](const LoraOptions& options) {
    return message_of<UserError>([&] { apply_lora(gpt, options); });
  };
  EXPECT_EQ(refused({.targets = {"q_proj"}}),
            "targets: no Linear and no Conv1D is called 'q_proj'; there are c_attn, c_fc, c_proj");
  EXPECT_THAT(refused({.targets = {"all-linear", "c_attn"}}), HasSubstr("all-linear stands alone"));
  EXPECT_THAT(refused({.modules_to_save = {"score"}}),
              HasSubstr("no layer with parameters is called 'score'"));
  EXPECT_THAT(trained(gpt), SizeIs(parameters(gpt).size())) << "nothing is frozen by an error";
  Mlp mlp(MlpOptions{.in_features = 8, .hidden = {4}, .num_classes = 10});
  EXPECT_THAT(message_of<UserError>([&] { apply_lora(mlp); }),
              HasSubstr("there is no default for this model"));
}

TEST(LoraTest, ALayerHasOneAdapter) {
  Gpt model = gpt_of_two_blocks();
  EXPECT_THAT(apply_lora(model, {.targets = {"c_attn"}}), SizeIs(2));
  EXPECT_THAT(message_of<UserError>([&] { apply_lora(model, {.targets = {"c_attn"}}); }),
              HasSubstr("called 'c_attn'; there are c_fc, c_proj"));
}

}  // namespace
}  // namespace tutti
