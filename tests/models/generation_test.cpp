#include "models/generation.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "models/layers/activation.h"
#include "models/layers/attention.h"
#include "models/zoo/gpt.h"
#include "models/zoo/llama.h"
#include "tests/recipe/section.h"

namespace tutti {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::SizeIs;

// Gives every token the same scores, independent of earlier tokens: the logarithms of chances.
class Chances final : public Model {
 public:
  explicit Chances(const std::vector<double>& chances) : scores_(at::tensor(chances).log()) {}
  TensorTree forward(const Batch& batch) override {
    seen.push_back(batch["input"]);
    return scores_.expand({seen.back().size(0), seen.back().size(1), scores_.size(0)});
  }
  at::Tensor loss(const Outputs& outputs, const Batch&) override { return outputs.tensor().mean(); }
  const char* kind() const override { return "Chances"; }

  std::vector<at::Tensor> seen;

 private:
  at::Tensor scores_;
};

// Draws `count` tokens.
Tokens drawn_of(Chances& model, GenerationOptions options, int64_t count) {
  options.do_sample = true;
  options.max_new_tokens = count;
  return generate_causally(model, /*window=*/1, {{{0}, RandomKey(3, "test")}}, options).front();
}

double part_of(const Tokens& tokens, int64_t token) {
  return static_cast<double>(std::count(tokens.begin(), tokens.end(), token)) /
         static_cast<double>(tokens.size());
}

TEST(GenerationTest, WithoutSamplingTheLikeliestTokenIsTaken) {
  Chances model({0.1, 0.2, 0.4, 0.3});
  const auto found = generate_causally(model, 8, {{{0}, RandomKey(3, "test")}}, {.max_new_tokens = 3});
  EXPECT_THAT(found, ElementsAre(ElementsAre(2, 2, 2)));
}

TEST(GenerationTest, DrawsFollowTheChances) {
  Chances model({0.1, 0.2, 0.4, 0.3});
  constexpr double kFourDeviations = 0.045;  // of a part of one half in 2000 draws
  const Tokens tokens = drawn_of(model, {.top_k = 0}, 2000);
  EXPECT_NEAR(part_of(tokens, 2), 0.4, kFourDeviations);
  EXPECT_NEAR(part_of(tokens, 0), 0.1, kFourDeviations);
  const Tokens cooler = drawn_of(model, {.temperature = 0.5, .top_k = 0}, 2000);
  EXPECT_NEAR(part_of(cooler, 2), 0.16 / 0.30, kFourDeviations) << "chances squared";
}

TEST(GenerationTest, DrawsMayBeLimitedToTheLikeliestTokens) {
  Chances model({0.1, 0.2, 0.4, 0.3});
  const Tokens of_two = drawn_of(model, {.top_k = 2}, 1000);
  EXPECT_EQ(std::set<int64_t>(of_two.begin(), of_two.end()), (std::set<int64_t>{2, 3}));
  EXPECT_NEAR(part_of(of_two, 2), 4.0 / 7.0, 0.065);
  EXPECT_THAT(drawn_of(model, {.top_k = 1}, 20), Each(2));
  // 0.4 is not enough for 0.6, 0.4 + 0.3 is.
  const Tokens of_mass = drawn_of(model, {.top_k = 0, .top_p = 0.6}, 1000);
  EXPECT_EQ(std::set<int64_t>(of_mass.begin(), of_mass.end()), (std::set<int64_t>{2, 3}));
  EXPECT_THAT(drawn_of(model, {.top_p = 0.39}, 20), Each(2));
}

TEST(GenerationTest, TheModelSeesTheLastTokensOfEachPrompt) {
  Chances model({0.1, 0.9});
  const RandomKey draws(3, "test");
  generate_causally(model, 3, {{{0}, draws}, {{0, 0, 1, 0}, draws}}, {.max_new_tokens = 2});
  ASSERT_THAT(model.seen, SizeIs(2));
  EXPECT_TRUE(model.seen[0].equal(at::tensor({0, 0, 0, 0, 1, 0}, at::kLong).view({2, 3})))
      << "the short one is filled up at its end";
  EXPECT_TRUE(model.seen[1].equal(at::tensor({0, 1, 0, 1, 0, 1}, at::kLong).view({2, 3})));
}

TEST(GenerationTest, PromptsAtOnceComeToWhatEachComesToAlone) {
  Gpt model({.vocab_size = 40, .n_positions = 6, .n_embd = 16, .n_layer = 2, .n_head = 2, .dropout = 0.5});
  materialise(model, 5);
  std::vector<Prompt> prompts;
  for (const Tokens& tokens : {Tokens{1}, Tokens{1, 2, 3, 4, 5, 6, 7, 8}, Tokens{9, 10}})
    prompts.push_back({tokens, RandomKey(3, "test").fold_in(prompts.size())});
  for (const bool sampled : {false, true}) {
    const GenerationOptions options{.max_new_tokens = 10, .do_sample = sampled};
    const auto together = model.generate(prompts, options);
    for (std::size_t p = 0; p < prompts.size(); ++p)
      EXPECT_EQ(together[p], model.generate({prompts[p]}, options).front()) << p;
  }
}

// Tokens that the scores of a text alone call likeliest: what generation without a cache and without other
// prompts gives.
std::vector<Tokens> recomputed(Model& model, int64_t window, const std::vector<Prompt>& prompts,
                               int64_t count) {
  std::vector<Tokens> texts;
  for (const Prompt& prompt : prompts)
    texts.push_back(generate_causally(model, window, {prompt}, {.max_new_tokens = count}).front());
  return texts;
}

const LlamaOptions kSmallLlama{.vocab_size = 40,
                               .hidden_size = 16,
                               .intermediate_size = 24,
                               .num_hidden_layers = 2,
                               .num_attention_heads = 4,
                               .num_key_value_heads = 2,
                               .max_position_embeddings = 12,
                               .initializer_range = 0.5};

LlamaOptions llama_with(const std::function<void(LlamaOptions&)>& change) {
  LlamaOptions options = kSmallLlama;
  change(options);
  return options;
}

Setting scaling(const std::string& type) {
  Setting table = section_with({{"rope_type", type}, {"factor", 2.0}});
  return table;
}

// Models, and the tokens that a pass of each sees of longer texts.
std::vector<std::pair<std::shared_ptr<Model>, int64_t>> causal_models() {
  constexpr int64_t kAny = 1000;
  const auto llama = [](const LlamaOptions& options) { return std::make_shared<Llama>(options); };
  const GptOptions gpt{.vocab_size = 40, .n_positions = 30, .n_embd = 16, .n_layer = 2, .n_head = 4};
  GptOptions long_gpt = gpt;
  long_gpt.n_positions = 40;
  const auto with_bias = [](std::shared_ptr<Model> model) {
    const auto by_place = [](int64_t length, at::Device) {
      return at::arange(length, at::kFloat) * at::tensor({0.1, 0.3, 0.5, 0.9}, at::kFloat).view({4, 1, 1});
    };
    for (const auto& [name, layer] : layers(*model))
      if (auto* attention = dynamic_cast<SelfAttention*>(layer)) attention->set_position_bias(by_place, 40);
    return model;
  };
  return {{std::make_shared<Gpt>(gpt), 30},
          {with_bias(std::make_shared<Gpt>(long_gpt)), 40},
          {llama(kSmallLlama), kAny},
          {llama(llama_with([](auto& o) { o.model_type = "qwen3"; })), kAny},
          {llama(llama_with([](auto& o) { o.sliding_window = 3; })), kAny},
          {llama(llama_with([](auto& o) { o.rope_scaling = scaling("dynamic"); })), kAny},
          {with_bias(llama(kSmallLlama)), 40}};
}

std::vector<Prompt> prompts_of(const std::vector<Tokens>& texts) {
  std::vector<Prompt> prompts;
  for (const Tokens& tokens : texts)
    prompts.push_back({tokens, RandomKey(3, "test").fold_in(prompts.size())});
  return prompts;
}

TEST(GenerationTest, WithKeysAndValuesKeptAndOtherPromptsTheSameTokensComeOut) {
  for (const auto& texts :
       {std::vector<Tokens>{{1, 2, 3}}, std::vector<Tokens>{{4}, {1, 2, 3, 4, 5, 6, 7, 8}, {9, 10}},
        std::vector<Tokens>{{5, 6}, {7, 8}}, std::vector<Tokens>{{1, 2, 3}, Tokens(200, 7), {9, 10, 11}}})
    for (const auto& [model, window] : causal_models()) {
      materialise(*model, 5);
      EXPECT_EQ(model->generate(prompts_of(texts), {.max_new_tokens = 25}),
                recomputed(*model, window, prompts_of(texts), 25))
          << model->kind() << ' ' << texts.size();
    }
}

// Notes the tokens of each pass.
std::vector<int64_t> passes_of(Model& model, const std::vector<Tokens>& texts, int64_t count) {
  std::vector<int64_t> passes;
  const auto hook = model.slots().front()->before(
      [&](const TensorTree& input) { passes.push_back(input.tensor().size(1)); });
  model.generate(prompts_of(texts), {.max_new_tokens = count});
  return passes;
}

TEST(GenerationTest, APassRunsOverTheNewTokensAlone) {
  Llama llama(kSmallLlama);
  materialise(llama, 5);
  EXPECT_THAT(passes_of(llama, {{1, 2, 3}, {1}}, 4), ElementsAre(3, 1, 1, 1));
  Gpt gpt({.vocab_size = 40, .n_positions = 5, .n_embd = 16, .n_layer = 2, .n_head = 4});
  materialise(gpt, 5);
  EXPECT_THAT(passes_of(gpt, {{1, 2, 3}, {1}}, 5), ElementsAre(3, 1, 1, 5, 5)) << "positions move then";
}

TEST(GenerationTest, AnAttentionThatKeepsNothingRunsOverAllTokens) {
  Gpt model({.vocab_size = 40, .n_positions = 8, .n_embd = 16, .n_layer = 2, .n_head = 4});
  replace_layers(model, [](const NamedSlot& named) -> std::shared_ptr<Layer> {
    return named.name == "transformer.h.0.attn" ? std::make_shared<Identity>() : nullptr;
  });
  materialise(model, 5);
  EXPECT_THAT(passes_of(model, {{1, 2, 3}}, 3), ElementsAre(3, 4, 5));
}

TEST(GenerationTest, GeneratingLeavesNoTraces) {
  Gpt model({.vocab_size = 40, .n_positions = 6, .n_embd = 16, .n_layer = 1, .n_head = 2, .dropout = 0.5});
  materialise(model, 5);
  at::manual_seed(7);
  const at::Tensor undisturbed = at::rand({3});
  at::manual_seed(7);
  int told = 0;
  const GenerationOptions options{.max_new_tokens = 4, .do_sample = true, .each_token = [&] { ++told; }};
  model.generate({{{1}, RandomKey(3, "test")}}, options);
  EXPECT_EQ(told, 4);
  EXPECT_TRUE(at::rand({3}).equal(undisturbed)) << "the default generator";
  EXPECT_TRUE(model.context().training);
  for (const auto& one : parameters(model)) EXPECT_FALSE(one.parameter->tensor.grad().defined());
}

TEST(GenerationTest, ModelsOfBytesAreDistinguishedByTheirNumberOfTokens) {
  for (const int64_t vocabulary : {128, 200, 256}) EXPECT_TRUE(tokens_are_bytes(vocabulary));
  for (const int64_t vocabulary : {0, 127, 257, 50257}) EXPECT_FALSE(tokens_are_bytes(vocabulary));
}

}  // namespace
}  // namespace tutti
