// Direct preference optimisation beside trl's formula in plain tensors.

#include "algorithms/loop/dpo.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>
#include <sstream>

#include "commands/check.h"
#include "commands/inspect.h"
#include "commands/local_train.h"
#include "io/json/json_line.h"
#include "models/zoo/factory.h"
#include "tests/actors/sleeping_world.h"
#include "tests/data/texts/letters_tokenizer.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr int kPreferenceSteps = 20;
constexpr double kPreferenceRate = 0.5, kBeta = 0.3;

struct Answers {
  std::string prompt, chosen, rejected;
};
// Letters are tokens from 0 on, and the end of a document is 28.
const std::vector<Answers> kAnswers = {{"abc", "de", "hgf"}, {"b", "cde", "a"},    {"hh", "gg", "ab"},
                                       {"ce", "fgh", "bb"},  {"dab", "c", "ghah"}, {"eba", "dd", "e"}};

class Preferences : public testing::Test {
 protected:
  Preferences() {
    std::string lines;
    for (const auto& [prompt, chosen, rejected] : kAnswers)
      lines +=
          R"({"prompt": ")" + prompt + R"(", "good": ")" + chosen + R"(", "bad": ")" + rejected + "\"}\n";
    write_text(folder_.path("pairs.jsonl"), lines);
    write_text(folder_.path("tokenizer.json"), letters_tokenizer());
    write_text(folder_.path("tokenizer_config.json"), R"({"eos_token": "</s>"})");
  }

  std::string model(const std::string& more = "") const {
    return "[model]\nkind = 'gpt'\nvocab_size = 29\nn_layer = 2\nn_head = 2\nn_embd = 16\nn_positions = 16\n"
           "dropout = 0.0\n" +
           more;
  }
  std::string recipe(const std::string& model, int steps, const std::string& fields,
                     const std::string& more = "") const {
    return "seed = 5\n" + model + "[data.train]\nkind = 'text'\npath = '" + folder_.path("pairs.jsonl") +
           "'\ntokenizer = '" + folder_.path("tokenizer.json") + "'\ncache = '" + folder_.path("cache") +
           "'\nbatch_size = 6\nsequence_length = 16\n" + fields +
           "[optimizer]\nkind = 'sgd'\nlr = " + std::to_string(kPreferenceRate) +
           "\n[train]\nmax_duration = '" + std::to_string(steps) + "ba'\n" + more;
  }
  std::string preferring(const std::string& more = "", int steps = kPreferenceSteps) const {
    return recipe(model("weights = '" + start() + "'\n"), steps,
                  "prompt_field = 'prompt'\nchosen_field = 'good'\nrejected_field = 'bad'\n",
                  more + "[[algorithms]]\nkind = 'dpo'\nbeta = " + std::to_string(kBeta) + "\n");
  }
  std::string start() const { return folder_.path("sft/checkpoints/ep5-ba5"); }

  void train(const std::string& text, const std::string& name, int ranks = 1,
             const std::string& resume = "") const {
    LocalRunOptions options;
    options.ranks = ranks;
    options.run_dir = folder_.path(name);
    options.resume = resume;
    options.quiet = true;
    train_in_one_process(recipe_of(text), options);
  }
  void train_start() const {
    train(recipe(model(), 5, "prompt_field = 'prompt'\nresponse_field = 'good'\npacking = 'first_fit'\n"),
          "sft");
  }
  std::map<std::string, at::Tensor> weights(const std::string& name) const {
    return newest_checkpoint(folder_.path(name)).tensors;
  }
  std::string refused(const std::string& text) const {
    return message_of<UserError>([&] { check_text(recipe_of(text), {}); });
  }

  Scratch folder_;
};

// The sum of the log-probabilities of the answer's tokens and of the end, of a text alone in a batch.
at::Tensor log_probability(Model& model, const std::string& prompt, const std::string& answer) {
  std::vector<int64_t> tokens;
  for (const char letter : prompt + answer) tokens.push_back(letter - 'a');
  const at::Tensor input = at::tensor(tokens).unsqueeze(0);
  tokens.push_back(28);
  const at::Tensor next = at::tensor(std::vector<int64_t>(tokens.begin() + 1, tokens.end()));
  const at::Tensor scores = model.forward(TensorTree::Children{{"input", input}}).tensor()[0];
  const at::Tensor each = scores.log_softmax(-1).gather(1, next.unsqueeze(1)).squeeze(1);
  return each.slice(0, std::ssize(prompt) - 1).sum();
}

std::shared_ptr<Model> with_weights(const std::string& text,
                                    const std::map<std::string, at::Tensor>& tensors) {
  SampleSpec spec{.shapes = {{"input", {16}}, {"target", {16}}}, .classes = 29};
  spec.dtypes = {{"input", at::kLong}, {"target", at::kLong}};
  auto model = make_model(recipe_of(text).at("model"), spec);
  materialise(*model, 1);
  const at::NoGradGuard no_grad;
  for (const auto& named : parameters(*model))
    named.parameter->tensor.copy_(tensors.at("model/" + named.name));
  return model;
}

std::vector<at::Tensor> tensors_of_model(Model& model) {
  std::vector<at::Tensor> tensors;
  for (const auto& named : parameters(model)) tensors.push_back(named.parameter->tensor);
  return tensors;
}

TEST_F(Preferences, TrainByTrlsFormula) {
  train_start();
  const std::string text = preferring();
  const auto policy = with_weights(text, weights("sft")), reference = with_weights(text, weights("sft"));
  for (int step = 0; step < kPreferenceSteps; ++step) {
    at::Tensor loss = at::zeros({});
    for (const auto& [prompt, chosen, rejected] : kAnswers) {
      const auto margin = [&](Model& model) {
        return log_probability(model, prompt, chosen) - log_probability(model, prompt, rejected);
      };
      loss = loss - at::log_sigmoid((margin(*policy) - margin(*reference).detach()) * kBeta);
    }
    const auto all = tensors_of_model(*policy);
    const auto gradients = torch::autograd::grad({loss / std::ssize(kAnswers)}, all);
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < all.size(); ++i) all[i].sub_(gradients[i], kPreferenceRate);
  }
  for (const int ranks : {1, 2}) {
    const std::string name = "dpo" + std::to_string(ranks);
    train(preferring(ranks == 2 ? "grad_accum = 2\n" : ""), name, ranks);
    const auto trained = weights(name);
    double largest = 0;
    for (const auto& named : parameters(*policy))
      largest = std::max(
          largest, (trained.at("model/" + named.name) - named.parameter->tensor).abs().max().item<double>());
    EXPECT_LT(largest, 1e-6) << ranks;
    EXPECT_GT((trained.at("model/transformer.wte.weight") - weights("sft").at("model/transformer.wte.weight"))
                  .abs()
                  .max()
                  .item<double>(),
              1e-2)
        << "nothing was learned";
  }
}

// The reference stays that of the start.
TEST_F(Preferences, HaveTheSameBitsInHalves) {
  train_start();
  train(preferring("", 6), "whole");
  train(preferring("", 3), "halves");
  train(preferring("", 6), "halves", 1, "auto");
  EXPECT_EQ(inspect_digest(folder_.path("halves")), inspect_digest(folder_.path("whole")));
}

// Of a start with averages too: the policy begins with the weights, and so does the reference.
TEST_F(Preferences, BeginWithoutAReward) {
  const std::string sft =
      recipe(model(), 5, "prompt_field = 'prompt'\nresponse_field = 'good'\n",
             "[[algorithms]]\nkind = 'ema'\nhalf_life = '2ba'\nupdate_interval = '1ba'\n");
  train(sft, "sft");
  const std::string pairs = "prompt_field = 'prompt'\nchosen_field = 'good'\nrejected_field = 'bad'\n";
  const auto first_reward = [&](const std::string& reference, const std::string& name) {
    train(recipe(model(), 1, pairs,
                 "[checkpoint]\nload_path = '" + folder_.path("sft") +
                     "'\nload_weights_only = true\n[[algorithms]]\nkind = 'dpo'\n" + reference),
          name);
    std::istringstream lines(read_text(folder_.path(name + "/metrics.jsonl")));
    std::string line;
    while (std::getline(lines, line) && line.find("rewards/chosen") == line.npos);
    return json_number(line, "rewards/chosen");
  };
  EXPECT_EQ(first_reward("", "start"), 0);
  EXPECT_NE(first_reward("reference = '" + folder_.path("sft") + "'\n", "averages"), 0);
}

TEST_F(Preferences, ComeFromAReferenceOfTheSameTokens) {
  train_start();
  std::string other = model();
  other.replace(other.find("29"), 2, "31");
  train(recipe(other, 1, "prompt_field = 'prompt'\nresponse_field = 'good'\n"), "other");
  const std::string text = preferring() + "reference = '" + folder_.path("other") + "'\n";
  EXPECT_THAT(refused(text), HasSubstr("31 tokens, and the model has 29"));
  EXPECT_THAT(refused(preferring() + "[[algorithms]]\nkind = 'dpo'\n"), HasSubstr("the only one"));
}

TEST_F(Preferences, LogRewards) {
  train_start();
  train(preferring(), "dpo");
  const std::string log = read_text(folder_.path("dpo/metrics.jsonl"));
  for (const char* name : {"rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies"})
    EXPECT_THAT(log, HasSubstr(name));
}

TEST_F(Preferences, NeedPairsAndAModelThatHasLearned) {
  const std::string pairs = "prompt_field = 'prompt'\nchosen_field = 'good'\nrejected_field = 'bad'\n",
                    dpo = "[[algorithms]]\nkind = 'dpo'\n";
  EXPECT_THAT(refused(recipe(model(), 5, pairs, dpo)), HasSubstr("weights is missing"));
  train_start();
  EXPECT_THAT(refused(recipe(model("weights = '" + start() + "'\n"), 5,
                             "prompt_field = 'prompt'\nresponse_field = 'good'\n", dpo)),
              HasSubstr("no pairs of answers"));
  EXPECT_THAT(refused(recipe(model(), 5, "prompt_field = 'prompt'\nchosen_field = 'good'\n", dpo)),
              HasSubstr("given together"));
  EXPECT_THAT(refused(recipe(model(), 5, pairs + "messages_field = 'm'\n", dpo)), HasSubstr("in its place"));
}

// Numbers by hand: margins of 1 and -2 with beta 0.5.
TEST(DpoLoss, IsTheMeanOfLogSigmoids) {
  const at::Tensor policy = at::tensor({-1.0, -3.0, -4.0, -2.0}).view({2, 2}),
                   reference = at::tensor({-2.0, -3.0, -2.0, -2.0}).view({2, 2});
  EXPECT_NEAR(dpo_loss(policy, reference, 0.5).item<double>(),
              (std::log1p(std::exp(-0.5)) + std::log1p(std::exp(1.0))) / 2, 1e-12);
}

}  // namespace
}  // namespace tutti
