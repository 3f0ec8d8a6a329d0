#include "models/zoo/llama.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/layers/attention.h"
#include "models/layers/llama/attention.h"
#include "models/layers/llama/rotary.h"
#include "models/zoo/catalog.h"
#include "models/zoo/factory.h"
#include "recipe/resolve.h"
#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Keys = std::vector<std::pair<std::string, Setting::Value>>;

const LlamaOptions kSmall{.vocab_size = 40,
                          .hidden_size = 16,
                          .intermediate_size = 24,
                          .num_hidden_layers = 2,
                          .num_attention_heads = 4,
                          .num_key_value_heads = 2};

at::Tensor llama_scores(Model& model, const Batch& batch) {
  const at::NoGradGuard no_grad;
  return model.forward(batch).tensor();
}

TEST(Llama, StartsAsTransformersDoes) {
  LlamaOptions options = kSmall;
  options.hidden_size = 128;
  options.model_type = "qwen2";
  Llama model(options);
  materialise(model, 5);
  for (const auto& [name, parameter] : parameters(model)) {
    const at::Tensor& tensor = parameter->tensor;
    if (name.ends_with("bias"))
      EXPECT_EQ(tensor.abs().max().item<float>(), 0) << name;
    else if (tensor.dim() == 1)
      EXPECT_TRUE(tensor.eq(1).all().item<bool>()) << name;
    else
      EXPECT_NEAR(tensor.std().item<double>(), 0.02, 0.0015) << name;
  }
}

// Per token: 6 per parameter but the embeddings', and 12 a head's feature for each token that is seen.
TEST(Llama, CountsTheOperationsOfAStep) {
  const Batch batch = TensorTree::Children{{"input", at::zeros({3, 10}, at::kLong)}};
  constexpr double kBlock = 16 * 16 + 2 * 16 * 8 + 16 * 16 + 3 * 16 * 24 + 2 * 16;
  constexpr double kMultiplied = 2 * kBlock + 16 + 40 * 16;
  EXPECT_DOUBLE_EQ(Llama(kSmall).flops_per_batch(batch), 30 * (6 * kMultiplied + 12 * 2 * 16 * 10));
  LlamaOptions tied = kSmall, near = kSmall;
  tied.tie_word_embeddings = true;
  EXPECT_DOUBLE_EQ(Llama(tied).flops_per_batch(batch), Llama(kSmall).flops_per_batch(batch));
  near.sliding_window = 4;
  EXPECT_DOUBLE_EQ(Llama(near).flops_per_batch(batch), 30 * (6 * kMultiplied + 12 * 2 * 16 * 4));
}

TEST(Llama, DocumentsOfASampleAreWhatEachIsAlone) {
  for (const std::optional<int64_t> window : {std::optional<int64_t>(), std::optional<int64_t>(3)}) {
    LlamaOptions options = kSmall;
    options.sliding_window = window;
    options.initializer_range = 0.5;
    Llama model(options);
    materialise(model, 5);
    const at::Tensor tokens = at::randint(40, {1, 9}, at::kLong);
    const Batch packed =
        TensorTree::Children{{"input", tokens},
                             {"segments", at::tensor({1, 1, 1, 1, 2, 2, 2, 2, 2}, at::kLong).view({1, 9})},
                             {"positions", at::tensor({0, 1, 2, 3, 0, 1, 2, 3, 4}, at::kLong).view({1, 9})}};
    const at::Tensor together = llama_scores(model, packed);
    const at::Tensor first = llama_scores(model, TensorTree::Children{{"input", tokens.narrow(1, 0, 4)}});
    const at::Tensor second = llama_scores(model, TensorTree::Children{{"input", tokens.narrow(1, 4, 5)}});
    EXPECT_TRUE(at::allclose(together, at::cat({first, second}, 1), 1e-4, 1e-4)) << window.value_or(0);
  }
}

TEST(Llama, APositionBiasTakesThePlaceOfRotaryPositions) {
  LlamaOptions options = kSmall;
  options.initializer_range = 0.5;
  Llama model(options), other(options);
  options.rope_theta = 3.0;
  Llama turned(options);
  for (Model* one : std::initializer_list<Model*>{&model, &turned}) {
    materialise(*one, 5);
    for (const auto& [name, layer] : layers(*one))
      if (auto* attention = dynamic_cast<SelfAttention*>(layer))
        attention->set_position_bias(
            [](int64_t length, at::Device) {
              return at::arange(length, at::kFloat).view({1, 1, -1}).expand({4, 1, -1});
            },
            20);
  }
  materialise(other, 5);
  const Batch batch = TensorTree::Children{{"input", at::randint(40, {2, 7}, at::kLong)}};
  EXPECT_TRUE(llama_scores(model, batch).equal(llama_scores(turned, batch)));
  EXPECT_FALSE(at::allclose(llama_scores(model, batch), llama_scores(other, batch), 1e-2, 1e-2));
}

std::string refused(Keys keys) {
  keys.insert(keys.begin(), {"kind", std::string("llama")});
  const SampleSpec samples{.shapes = {{"input", {32}}, {"target", {32}}}, .classes = 256};
  return message_of<UserError>(
      [&] { make_model(resolve_section(model_catalog(), section_with(keys), {}), samples); });
}

TEST(Llama, OptionsOfOtherNetworksAreRefusedByName) {
  const auto scaled = [](const Keys& keys) { return Setting::Value(section_with(keys).table()); };
  const std::vector<std::pair<Keys, std::string>> all = {
      {{{"num_key_value_heads", int64_t{5}}},
       "num_key_value_heads = 5: expected a divisor of num_attention_heads, 32"},
      {{{"head_dim", int64_t{5}}}, "expected heads of an even number of features"},
      {{{"hidden_size", int64_t{100}}}, "expected a divisor of hidden_size"},
      {{{"sliding_window", int64_t{5}}}, "a model of model_type \"llama\" has none"},
      {{{"model_type", std::string("mistral")}, {"attention_bias", true}}, "has none"},
      {{{"model_type", std::string("qwen2")}, {"layer_types", list_value({std::string("full_attention")})}},
       "expected one for each of the 32 blocks"},
      {{{"rope_scaling", scaled({{"rope_type", std::string("longrope")}})}}, "longrope"},
      {{{"rope_scaling", scaled({{"rope_type", std::string("linear")}})}}, "expected factor beside it"},
      {{{"rope_scaling", scaled({{"rope_type", std::string("llama3")}, {"factor", 8.0}})}},
       "expected low_freq_factor beside it"},
      {{{"rope_scaling", scaled({{"partial_rotary_factor", 0.5}})}}, "partial_rotary_factor"},
      {{{"pad_token_id", int64_t{32000}}}, "expected a token below vocab_size, 32000"}};
  for (const auto& [keys, words] : all) EXPECT_THAT(refused(keys), HasSubstr(words)) << keys.back().first;
}

// transformers' formula of linear scaling, on whole numbers.
TEST(RotaryEmbedding, TurnsByThePlaceTimesTheFrequency) {
  RotaryEmbedding rotary({.type = "linear", .theta = 100.0, .features = 4, .factor = 2.0});
  materialise(rotary, 1);
  const TensorTree found = rotary.forward(at::tensor({0, 3}, at::kLong));
  EXPECT_NEAR(found["cos"][1][0].item<double>(), std::cos(1.5), 1e-6);
  EXPECT_NEAR(found["sin"][1][1].item<double>(), std::sin(0.15), 1e-6);
  EXPECT_EQ(found["cos"][0][0].item<double>(), 1.0);
}

TEST(SeenKeys, AreThoseOfTheDocumentWithinTheWindow) {
  EXPECT_FALSE(seen_keys({}, 4, 0, at::kCPU).defined());
  EXPECT_FALSE(seen_keys({}, 4, 4, at::kCPU).defined());
  const at::Tensor near = seen_keys({}, 4, 2, at::kCPU)[0][0];
  EXPECT_TRUE(
      near.equal(at::tensor({1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1}, at::kLong).view({4, 4}).ne(0)));
}

}  // namespace
}  // namespace tutti
