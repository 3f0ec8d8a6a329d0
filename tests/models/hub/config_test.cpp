#include "models/hub/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/zoo/catalog.h"
#include "runtime/error.h"
#include "tests/recipe/section.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Keys = std::vector<std::pair<std::string, Setting::Value>>;

Keys gpt2(const Keys& others = {}) {
  Keys keys{{"model_type", std::string("gpt2")},
            {"vocab_size", int64_t{40}},
            {"n_positions", int64_t{16}},
            {"n_embd", int64_t{16}},
            {"n_layer", int64_t{2}},
            {"n_head", int64_t{2}},
            {"resid_pdrop", 0.1}};
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

std::string refused_config(const Keys& config) {
  return message_of<UserError>([&] { zoo_section(section_with(config), section_with({})); });
}

Setting section_for(const Keys& config, const Keys& asked = {}) {
  return {zoo_section(section_with(config), section_with(asked)), "model", {}};
}

TEST(HubConfigTest, OfAnotherModelIsRefusedWithTheModelsThatAreThere) {
  EXPECT_THAT(refused_config({{"model_type", std::string("gemma")}}),
              AllOf(HasSubstr("model_type = \"gemma\""),
                    HasSubstr("it has those of bert, gpt2, llama, mistral, qwen2 and qwen3")));
  EXPECT_THAT(refused_config({}), HasSubstr("it has no model_type"));
}

TEST(HubConfigTest, OfWhatTheZoosModelDoesNotHaveIsRefused) {
  const std::vector<std::pair<Keys, std::string>> refused = {
      {{{"activation_function", std::string("relu")}}, "\"gelu_new\" alone"},
      {{{"layer_norm_epsilon", 1e-6}}, "1e-05 alone"},
      {{{"scale_attn_by_inverse_layer_idx", true}}, "false alone"},
      {{{"tie_word_embeddings", false}}, "true alone"},
      {{{"n_inner", int64_t{32}}}, "64 alone"},
      {{{"attn_pdrop", 0.2}}, "tutti's gpt has one dropout"}};
  for (const auto& [keys, words] : refused)
    EXPECT_THAT(refused_config(gpt2(keys)), AllOf(HasSubstr(keys[0].first), HasSubstr(words)));
  EXPECT_EQ(section_for(gpt2({{"n_inner", int64_t{64}}, {"attn_pdrop", 0.1}})).at("dropout").number(), 0.1);
}

TEST(HubConfigTest, TheRecipeMayAskForAnotherHeadAndDropout) {
  const Keys bert{{"model_type", std::string("bert")},
                  {"architectures", list_value({std::string("BertForMaskedLM")})},
                  {"hidden_dropout_prob", 0.1}};
  EXPECT_EQ(section_for(bert).at("kind").text(), "bert_mlm");
  const Setting classifier = section_for(
      bert, {{"head", std::string("classification")}, {"num_classes", int64_t{7}}, {"dropout", 0.0}});
  EXPECT_EQ(classifier.at("kind").text(), "bert_classification");
  EXPECT_EQ(classifier.at("num_classes").integer(), 7);
  EXPECT_EQ(classifier.at("hidden_dropout_prob").number(), 0);
  EXPECT_EQ(section_for(gpt2(), {{"dropout", 0.0}}).at("dropout").number(), 0);
}

TEST(HubConfigTest, ProblemTypesAreTheLossesThatTransformersGivesThem) {
  const auto section = [](const Keys& keys, const Keys& asked = {}) {
    Keys config{{"model_type", std::string("bert")},
                {"architectures", list_value({std::string("BertForSequenceClassification")})}};
    config.insert(config.end(), keys.begin(), keys.end());
    return section_for(config, asked);
  };
  const std::vector<std::pair<std::string, std::string>> losses = {
      {"single_label_classification", "cross_entropy"},
      {"multi_label_classification", "bce_with_logits"},
      {"regression", "mse"}};
  for (const auto& [type, loss] : losses) {
    EXPECT_EQ(section({{"problem_type", type}}).at("loss").text(), loss);
    EXPECT_FALSE(section({{"problem_type", type}}, {{"loss", std::string("l1")}}).has("loss"))
        << "the recipe's is kept";
    Setting model = smallest_section(model_catalog(), "bert_classification");
    model.find("loss")->value = loss;
    EXPECT_EQ(hub_folder(model, 3).configs.at(0).second.at("problem_type").text(), type);
  }
  EXPECT_EQ(section({{"num_labels", int64_t{1}}}).at("loss").text(), "mse");
  EXPECT_FALSE(section({{"num_labels", int64_t{3}}, {"problem_type", std::monostate()}}).has("loss"));
  EXPECT_THAT(message_of<UserError>([&] {
                section({{"problem_type", std::string("ranking")}});
              }),
              AllOf(HasSubstr("problem_type = \"ranking\""), HasSubstr("or regression")));
}

Keys llama(const std::string& type, const Keys& others = {}) {
  Keys keys{{"model_type", type},
            {"vocab_size", int64_t{40}},
            {"hidden_size", int64_t{16}},
            {"intermediate_size", int64_t{24}},
            {"num_hidden_layers", int64_t{3}},
            {"num_attention_heads", int64_t{32}},
            {"rms_norm_eps", 1e-5}};
  keys.insert(keys.end(), others.begin(), others.end());
  return keys;
}

TEST(HubConfigTest, KeysThatTheFoldersModelDoesNotTakeAreRefused) {
  const auto refused = [](const std::string& kind, const Keys& asked) {
    return message_of<UserError>([&] { require_taken(section_with(asked), kind); });
  };
  const Keys head{{"head", std::string("contrastive")}}, classes{{"num_classes", int64_t{3}}},
      pooling{{"pooling", std::string("cls")}};
  EXPECT_THAT(refused("llama", head), AllOf(HasSubstr("head = \"contrastive\""), HasSubstr("kind llama")));
  EXPECT_THAT(refused("bert_mlm", classes), HasSubstr("head = \"classification\""));
  EXPECT_THAT(refused("bert_classification", pooling), HasSubstr("pooling = \"cls\""));
  EXPECT_NO_THROW(require_taken(section_with(head), "bert_contrastive"));
  EXPECT_NO_THROW(require_taken(section_with(pooling), "bert_contrastive"));
  EXPECT_NO_THROW(require_taken(section_with(classes), "bert_classification"));
  EXPECT_NO_THROW(require_taken(section_with({{"dropout", 0.1}}), "llama"));
}

TEST(HubConfigTest, OfLlamasHasTheDefaultsOfItsType) {
  EXPECT_FALSE(section_for(llama("llama")).has("num_key_value_heads")) << "as many as heads";
  EXPECT_EQ(section_for(llama("mistral")).at("num_key_value_heads").integer(), 8);
  for (const char* qwen : {"qwen2", "qwen3"})
    EXPECT_EQ(section_for(llama(qwen)).at("num_key_value_heads").integer(), 32) << qwen;
  EXPECT_EQ(section_for(llama("mistral")).at("sliding_window").integer(), 4096);
  EXPECT_EQ(section_for(llama("qwen3")).at("head_dim").integer(), 128);
  EXPECT_FALSE(section_for(llama("mistral", {{"sliding_window", std::monostate()}})).has("sliding_window"));
  EXPECT_FALSE(section_for(llama("qwen2", {{"sliding_window", int64_t{5}}})).has("sliding_window"))
      << "use_sliding_window is false";
}

TEST(HubConfigTest, APadTokenBelowZeroCountsFromTheEndOfTheVocabulary) {
  EXPECT_EQ(section_for(llama("llama", {{"pad_token_id", int64_t{-1}}})).at("pad_token_id").integer(), 39);
  EXPECT_EQ(section_for(llama("llama", {{"pad_token_id", int64_t{3}}})).at("pad_token_id").integer(), 3);
  const Setting bert = section_for(
      {{"model_type", std::string("bert")}, {"vocab_size", int64_t{40}}, {"pad_token_id", int64_t{-2}}});
  EXPECT_EQ(bert.at("pad_token_id").integer(), 38);
}

TEST(HubConfigTest, OfAQwenThatSlidesSaysWhichBlocksDo) {
  const Setting section = section_for(llama(
      "qwen2",
      {{"use_sliding_window", true}, {"sliding_window", int64_t{5}}, {"max_window_layers", int64_t{2}}}));
  EXPECT_EQ(section.at("sliding_window").integer(), 5);
  EXPECT_THAT(section.at("layer_types").texts(),
              testing::ElementsAre("full_attention", "full_attention", "sliding_attention"));
}

TEST(HubConfigTest, RotaryPositionsAreReadInBothOfTransformersForms) {
  const Setting scaling(section_with({{"type", std::string("linear")}, {"factor", 2.0}}));
  const Setting before =
      section_for(llama("llama", {{"rope_theta", 5e5}, {"rope_scaling", scaling.table()}}));
  EXPECT_EQ(before.at("rope_theta").number(), 5e5);
  EXPECT_EQ(before.at("rope_scaling").at("type").text(), "linear");
  const Setting in_five(section_with({{"rope_type", std::string("default")}, {"rope_theta", 1e6}}));
  const Setting now = section_for(llama("llama", {{"rope_parameters", in_five.table()}}));
  EXPECT_EQ(now.at("rope_scaling").at("rope_theta").number(), 1e6);
}

TEST(HubConfigTest, OfALlamaWithPartOfTheFeaturesTurnedIsRefused) {
  EXPECT_THAT(refused_config(llama("llama", {{"partial_rotary_factor", 0.5}})),
              AllOf(HasSubstr("partial_rotary_factor"), HasSubstr("1.0 alone")));
}

TEST(HubConfigTest, OfAModelThatWasReadIsThatOfTheFile) {
  const Setting config = hub_folder(section_for(gpt2()), 0).configs.at(0).second;
  const Setting given = section_with(gpt2());
  for (const auto& [key, value] : given.table()) EXPECT_EQ(config.at(key).toml(), value.toml()) << key;
  EXPECT_TRUE(config.at("eos_token_id").is_none()) << "GPT-2's is beyond the vocabulary";
  EXPECT_THAT(message_of<UserError>([] {
                hub_folder(section_with({{"kind", std::string("mlp")}}), 0);
              }),
              HasSubstr("have no such model"));
}

}  // namespace
}  // namespace tutti
