#include "commands/generate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "commands/loaded_model.h"
#include "commands/local_train.h"
#include "tests/actors/sleeping_world.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kGptOfBytes =
    "[model]\nkind = \"gpt\"\nn_positions = 16\nn_embd = 16\nn_layer = 1\nn_head = 2\n";
constexpr const char* kShortTraining =
    "[optimizer]\nkind = \"adam\"\nlr = 0.01\n[train]\nmax_duration = \"3ba\"\n";

class GenerateTest : public testing::Test {
 protected:
  Setting train(const std::string& recipe) {
    LocalRunOptions options;
    options.quiet = true;
    options.run_dir = run_;
    const Setting resolved = recipe_of("seed = 3\n" + recipe + kShortTraining);
    EXPECT_EQ(train_in_one_process(resolved, options).exit_code, 0);
    return resolved;
  }
  Setting train_on_bytes(const std::string& algorithms = "") {
    std::ofstream(text_) << std::string(400, 'a') << "In the beginning";
    return train(algorithms + kGptOfBytes + "[data.train]\nkind = \"bytes\"\npath = \"" + text_ +
                 "\"\nsequence_length = 16\nbatch_size = 4\n");
  }
  void train_on_tokens() {
    train(
        "[model]\nkind = \"gpt\"\nvocab_size = 40\nn_positions = 16\nn_embd = 16\nn_layer = 1\nn_head = 2\n"
        "[data.train]\nkind = \"synthetic\"\ntargets = \"sequence\"\nvocab = 40\nsamples = 8\n"
        "batch_size = 4\nshape = [12]\n");
  }
  std::string refused(const std::string& prompt) {
    return message_of<UserError>([&] { generate_text({.path = run_, .prompt = prompt}); });
  }

  Scratch folder_;
  std::string run_ = folder_.path("run"), text_ = folder_.path("text.txt");
};

TEST_F(GenerateTest, ContinuesATextWithoutTheData) {
  const Setting recipe = train_on_bytes();
  std::string expected;
  {
    const Job job = single_process_job(recipe, 1);
    LoadedModel model(job, run_);
    model.load();
    expected = "In the " + sample_text(*model.state.model, *bytes_as_text(), "In the ", {30, 0.0, 0}) + '\n';
  }
  std::filesystem::remove(text_);
  EXPECT_EQ(generate_text({.path = run_, .prompt = "In the ", .length = 30, .temperature = 0}), expected);
  EXPECT_THAT(expected, HasSubstr("aaaa")) << "the model has learned nothing: this proves nothing";
}

TEST_F(GenerateTest, UsesTheAveragesThatEvaluationsUse) {
  const auto text = [&] { return generate_text({.path = run_, .prompt = "a", .length = 12, .seed = 1}); };
  train_on_bytes("[[algorithms]]\nkind = 'ema'\nhalf_life = '1000ba'\nupdate_interval = '1ba'\n");
  const std::string averaged = text();
  std::filesystem::remove_all(run_);
  train_on_bytes();
  EXPECT_NE(text(), averaged);
}

TEST_F(GenerateTest, DependsOnTheSeed) {
  train_on_bytes();
  const auto text = [&](uint64_t seed) {
    return generate_text({.path = run_, .prompt = "a", .length = 12, .temperature = 2.0, .seed = seed});
  };
  EXPECT_EQ(text(1), text(1));
  EXPECT_NE(text(1), text(2));
}

TEST_F(GenerateTest, ContinuesTokensThatAreNoBytes) {
  train_on_tokens();
  const std::string text = generate_text({.path = run_, .prompt = "17 4 2", .length = 5});
  EXPECT_THAT(text, StartsWith("17 4 2 "));
  std::istringstream words(text);
  int tokens = 0;
  for (int64_t token = 0; words >> token; ++tokens) EXPECT_LT(token, 40);
  EXPECT_EQ(tokens, 8);
  EXPECT_THAT(refused("In the"), HasSubstr("PROMPT = \"In the\": expected tokens, as in \"17 4 2\""));
  EXPECT_THAT(refused("17 40"), HasSubstr("the model has tokens 0 to 39, not 40"));
}

TEST_F(GenerateTest, RefusesAModelThatIsNotOfLanguage) {
  train(
      "[model]\nkind = \"mlp\"\nhidden = [4]\n[data.train]\nkind = \"synthetic\"\nshape = [6]\nsamples = 8\n"
      "batch_size = 4\n");
  EXPECT_THAT(refused("In the"), HasSubstr("a language model, like gpt or llama; mlp cannot"));
}

}  // namespace
}  // namespace tutti
