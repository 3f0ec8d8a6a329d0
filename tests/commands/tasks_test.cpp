// Evaluations of a language model by choices and by answers; beside lm-eval (tests/golden/make_tasks.py).

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "commands/check.h"
#include "commands/generate.h"
#include "commands/local_train.h"
#include "commands/predict.h"
#include "io/json/json_line.h"
#include "io/json/json_setting.h"
#include "tests/actors/sleeping_world.h"
#include "tests/data/texts/letters_tokenizer.h"

namespace tutti {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string golden_task(const std::string& file) {
  return std::string(TUTTI_SOURCE_DIR) + "/tests/golden/" + file;
}

class LanguageTask : public testing::Test {
 protected:
  LanguageTask() {
    write_text(folder_.path("tokenizer.json"), letters_tokenizer());
    write_text(folder_.path("tokenizer_config.json"), R"({"eos_token": "</s>"})");
    write_text(folder_.path("texts.jsonl"), R"({"text": "abcabcabcabcabcabcabc"})"
                                            "\n");
  }

  std::string recipe(const std::string& evaluation, int steps = 0) const {
    return "seed = 5\n[model]\nkind = 'gpt'\nvocab_size = 29\nn_layer = 1\nn_head = 2\nn_embd = 16\n"
           "n_positions = 16\ndropout = 0.0\n[data.train]\nkind = 'text'\npath = '" +
           folder_.path("texts.jsonl") + "'\nsequence_length = 8\nbatch_size = 2\n" + tokenizer() +
           "cache = '" + folder_.path("cache") + "'\n[data.eval]\n" + evaluation +
           "[optimizer]\nkind = 'adam'\nlr = 0.03\n[train]\nmax_duration = '" + std::to_string(steps) +
           "ba'\neval_interval = '1dur'\n";
  }
  std::string tokenizer() const { return "tokenizer = '" + folder_.path("tokenizer.json") + "'\n"; }
  // An evaluation on these lines.
  std::string task(const std::string& kind, const std::string& lines, const std::string& more = "") const {
    write_text(folder_.path(kind + ".jsonl"), lines);
    return "kind = '" + kind + "'\npath = '" + folder_.path(kind + ".jsonl") + "'\nbatch_size = 3\n" +
           (more.find("tokenizer") == std::string::npos ? tokenizer() : "") + more;
  }
  std::string refused(const std::string& evaluation) const {
    return message_of<UserError>([&] { check_text(recipe_of(recipe(evaluation, 1)), {}); });
  }
  // The last evaluation's values.
  std::map<std::string, double> trained(const std::string& evaluation, const std::string& run, int ranks,
                                        const std::string& more = "") const {
    LocalRunOptions options{.ranks = ranks, .run_dir = folder_.path(run), .quiet = true};
    EXPECT_EQ(train_in_one_process(recipe_of(recipe(evaluation, 40) + more), options).exit_code, 0);
    std::map<std::string, double> values;
    std::istringstream lines(read_text(folder_.path(run + "/metrics.jsonl")));
    for (std::string line; std::getline(lines, line);)
      if (line.find("metrics/eval") != std::string::npos)
        for (const auto& [name, value] : json_numbers_of(line).members)
          if (name.starts_with("metrics/eval/")) values[name.substr(13)] = value;
    return values;
  }

  Scratch folder_;
};

TEST_F(LanguageTask, ChoicesHaveLmEvalsLikelihoodsAndAccuracies) {
  std::filesystem::copy_file(golden_task("tokenizers/llama3.json"), folder_.path("tokenizer.json"),
                             std::filesystem::copy_options::overwrite_existing);
  write_text(folder_.path("tokenizer_config.json"),
             R"({"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"})");
  const std::string text =
      recipe("kind = 'choices'\npath = '" + golden_task("tasks/questions.jsonl") + "'\n" + tokenizer() +
             "sequence_length = 40\nbatch_size = 7\n[[data.eval.metrics]]\nkind = 'ChoiceAccuracy'\n"
             "[[data.eval.metrics]]\nkind = 'ChoiceAccuracyNorm'\n[[data.eval.metrics]]\n"
             "kind = 'ChoiceAccuracyNorm'\nlength = 'bytes'\nname = 'ByBytes'\n");
  const Setting resolved = recipe_of("seed = 5\n[model]\nkind = 'hf'\npath = '" + golden_task("tasks") +
                                     "'\n" + text.substr(text.find("[data.train]")));
  predict_text(resolved, {.out = folder_.path("choices.jsonl")});
  std::istringstream lines(read_text(folder_.path("choices.jsonl")));
  const Setting expected = read_json_object(golden_task("tasks/choices.json"));
  double largest = 0;
  std::string line;
  for (const Setting& question : expected.at("log_likelihoods").array())
    for (const double sum : question.numbers()) {
      ASSERT_TRUE(std::getline(lines, line));
      largest = std::max(largest, std::abs(json_number(line, "logprob") - sum) / std::max(1.0, -sum));
    }
  EXPECT_FALSE(std::getline(lines, line));
  EXPECT_LT(largest, 1e-6);
  std::map<std::string, double> values;
  std::istringstream words(eval_text(resolved, ""));
  for (std::string name; words >> name;)
    if (name.starts_with("metrics/eval/")) words >> values[name.substr(13)];
  for (const auto& [ours, theirs] :
       {std::pair{"ChoiceAccuracy", "acc"}, {"ChoiceAccuracyNorm", "acc_norm"}, {"ByBytes", "acc_bytes"}})
    EXPECT_NEAR(values.at(ours), expected.at(theirs).number(), 1e-6) << theirs;
}

// Of two choices the one that the other begins with is likelier. The third answer is not the likeliest.
const std::string kLetters = R"({"question": "ab", "choices": ["x", "x x"], "answer": "A"}
{"question": "b c", "choices": ["x y", "x", "x y z"], "answer": "B"}
{"question": "abc", "choices": ["q", "q a"], "answer": "q a"}
{"question": "", "choices": ["e", "e b"], "answer": "A"}
)";

TEST_F(LanguageTask, QuestionsOnRanksHaveTheValuesOfOneRank) {
  const std::string evaluation = task("choices", kLetters);
  const auto whole = trained(evaluation, "whole", 1), halves = trained(evaluation, "halves", 2);
  EXPECT_EQ(whole.size(), 3);
  EXPECT_EQ(whole.at("ChoiceAccuracy"), halves.at("ChoiceAccuracy"));
  EXPECT_EQ(whole.at("ChoiceAccuracyNorm"), halves.at("ChoiceAccuracyNorm"));
  EXPECT_NEAR(whole.at("loss"), halves.at("loss"), 1e-2);
  EXPECT_EQ(whole.at("ChoiceAccuracy"), 0.75);
}

TEST_F(LanguageTask, QuestionsAreMeasuredWhole) {
  const auto values = trained(task("choices", kLetters, "subset_num_batches = 1\n"), "subset", 1);
  EXPECT_EQ(values.at("ChoiceAccuracy"), 1) << "two choices of a question, and one of another's three";
}

TEST_F(LanguageTask, MistakesInQuestionsAreNamed) {
  const auto refuses = [&](const std::string& line) { return refused(task("choices", line + "\n")); };
  EXPECT_THAT(refuses(R"({"question": "a", "choices": ["b", "c"], "answer": 2})"),
              AllOf(HasSubstr("choices.jsonl:1"), HasSubstr("names none of the 2 choices")));
  EXPECT_THAT(refuses(R"({"question": "a", "choices": ["b", "c"], "answer": "D"})"), HasSubstr("none of"));
  EXPECT_THAT(refuses(R"({"question": "a", "choices": ["b", "c"], "answer": 0.5})"),
              HasSubstr("neither a whole number nor a text"));
  EXPECT_THAT(refuses(R"({"question": "a", "choices": "b", "answer": 0})"), HasSubstr("two choices"));
  EXPECT_THAT(refuses(R"({"question": "a", "choices": ["b", ""], "answer": 0})"), HasSubstr("is empty"));
  EXPECT_THAT(refuses(R"({"question": "a", "choices": ["b", "c"], "answer": "B"}
{"question": "a", "choices": ["b", "c"], "answer": "1"})"),
              AllOf(HasSubstr("choices.jsonl:2"), HasSubstr("a letter here and a number elsewhere")));
  EXPECT_THAT(refuses(R"({"text": "a", "choices": ["b", "c"], "answer": 0})"),
              HasSubstr("no member 'question', 'query', 'ctx'"));
  EXPECT_THAT(refused(task("choices", kLetters, "context_field = 'q'\n")), HasSubstr("no member 'q'"));
  EXPECT_THAT(refused(task("choices", kLetters, "sequence_length = 2\n")), HasSubstr("more than"));
  write_text(folder_.path("other.json"), letters_tokenizer() + " ");
  EXPECT_THAT(refused(task("choices", kLetters, "tokenizer = '" + folder_.path("other.json") + "'\n")),
              HasSubstr("expected the tokenizer of [data.train]"));
}

// Of files of tokens nobody knows the tokenizer, and bytes have none.
TEST_F(LanguageTask, BytesAreNoOthersTokens) {
  const std::string lines = R"({"question": "a", "choices": ["b", "c"], "answer": 0})";
  const auto trained_on = [&](const std::string& data, const std::string& more) {
    std::string text = recipe(task("choices", lines + "\n", more), 1);
    text.replace(text.find("29"), 2, "301");
    const auto begin = text.find("[data.train]"), end = text.find("[data.eval]");
    return message_of<UserError>([&] {
      check_text(recipe_of(text.substr(0, begin) + "[data.train]\n" + data +
                           "sequence_length = 8\nbatch_size = 2\n" + text.substr(end)),
                 {});
    });
  };
  write_text(folder_.path("plain.txt"), std::string(100, 'a'));
  const std::string bytes = "kind = 'bytes'\npath = '" + folder_.path("plain.txt") + "'\n";
  EXPECT_THAT(trained_on(bytes, ""), HasSubstr("the model is trained on bytes"));
  std::string numbers;
  for (const uint16_t token : std::initializer_list<uint16_t>{1, 2, 300, 4, 5, 6, 7, 8, 9, 10, 11, 12})
    numbers += std::string(1, static_cast<char>(token & 255)) + static_cast<char>(token >> 8);
  write_text(folder_.path("tokens.bin"), numbers);
  const std::string tokens =
      "kind = 'tokens'\npath = '" + folder_.path("tokens.bin") + "'\ndtype = 'uint16'\n";
  EXPECT_THAT(trained_on(tokens, "# without a tokenizer\n"), HasSubstr("expected a tokenizer"));
}

// The right answers are what `tutti generate` writes; of one prompt they are not.
TEST_F(LanguageTask, AnswersAreTheLikeliestTokens) {
  const std::string none = R"({"prompt": "a", "answer": "b"})";
  trained(task("prompts", none), "run", 1);
  std::string lines, answers = "row,answer,reference\n";
  int count = 0;
  for (const std::string prompt : {"a", "bca", "c", "ab"}) {
    const std::string text =
        generate_text({.path = folder_.path("run"), .prompt = prompt, .length = 5, .temperature = 0});
    const std::string answer = prompt == "c" ? "zz" : text.substr(prompt.size(), 5);
    answers += std::to_string(++count) + "," + text.substr(prompt.size(), 5) + ",q\n";
    lines += "{\"prompt\": \"" + prompt + "\", \"answer\": [\"q\", \"" + answer + "\"]}\n";
  }
  const std::string more = "max_new_tokens = 5\n";
  for (const int ranks : {1, 2}) {
    const auto values = trained(task("prompts", lines, more), "answers" + std::to_string(ranks), ranks);
    EXPECT_EQ(values.size(), 3);
    EXPECT_EQ(values.at("ExactMatch"), 0.75) << ranks;
    EXPECT_GT(values.at("CHRF"), 50) << ranks;
  }
  predict_text(recipe_of(recipe(task("prompts", lines, more), 40)),
               {.checkpoint = folder_.path("answers1"), .out = folder_.path("answers.csv")});
  EXPECT_EQ(read_text(folder_.path("answers.csv")), answers);
  EXPECT_EQ(
      trained(task("prompts", lines, more), "sharded", 2, "[sharding]\nstrategy = 'full'\n").at("ExactMatch"),
      0.75);
  EXPECT_EQ(trained(task("prompts", lines, more + "stop = ['b']\n"), "stopped", 1).at("ExactMatch"), 0);
}

TEST_F(LanguageTask, MistakesInPromptsAreNamed) {
  EXPECT_THAT(refused(task("prompts", "{\"prompt\": \"a\", \"answer\": [1]}\n")),
              AllOf(HasSubstr("prompts.jsonl:1"), HasSubstr("an element of member 'answer' is no text")));
  EXPECT_THAT(refused(task("prompts", "{\"prompt\": \"a\", \"answer\": []}\n")), HasSubstr("no reference"));
  EXPECT_THAT(refused(task("prompts", "{\"prompt\": \"a\"}\n")), HasSubstr("'reference', 'references'"));
  EXPECT_THAT(refused(task("prompts", "\n")), HasSubstr("there is no prompt"));
}

}  // namespace
}  // namespace tutti
