#include "tests/commands/wrong_recipes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "collectives/device_library.h"
#include "commands/check.h"
#include "commands/local_train.h"
#include "commands/train.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

namespace fs = std::filesystem;

constexpr int kUserError = 2;

// examples/digits.toml in a folder of its own, altered; every way to train on it within this process.
class WrongRecipe : public testing::Test {
 protected:
  WrongRecipe() {
    fs::create_directory_symlink(kExamples + "data", folder_.path("data"));
    write_text(recipe_, read_text(kExamples + "digits.toml"));
  }

  // Replaces the one `old_text`; gives the place of `named` as messages name it.
  std::string alter(const std::string& old_text, const std::string& new_text, const std::string& named) {
    std::string text = read_text(recipe_);
    const std::size_t at = text.find(old_text);
    EXPECT_NE(at, std::string::npos) << old_text;
    EXPECT_EQ(text.find(old_text, at + 1), std::string::npos) << old_text;
    text.replace(at, old_text.size(), new_text);
    write_text(recipe_, text);
    return recipe_ + ":" +
           std::to_string(1 + std::count(text.begin(), text.begin() + text.find(named), '\n')) + ": ";
  }

  Setting resolved() const { return resolve_recipe(read_recipe(recipe_, overrides_)); }

  // The standard error of `train` on a single rank.
  std::string said_alone() const {
    testing::internal::CaptureStderr();
    EXPECT_EQ(Launcher().train([this] { return resolved(); }, {run_, resume_}), kUserError);
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, StartsWith("error: "));
    return said.substr(std::min(said.size(), std::string("error: ").size()));
  }

  std::string said_by(int ranks) const {
    if (ranks == 1) return said_alone();
    LocalRunOptions options;
    options.ranks = ranks;
    options.run_dir = run_;
    options.resume = resume_;
    options.quiet = options.live = true;
    return message_of<UserError>([&] { train_in_one_process(resolved(), options); });
  }

  // All numbers of ranks give a message that begins with `place` and has the words in it; nothing trains.
  void expect_refused(const std::string& place, const std::vector<std::string>& words,
                      const std::vector<int>& ranks) const {
    for (const int count : ranks) expect_message(said_by(count), place, words);
    EXPECT_FALSE(fs::exists(run_ + "/metrics.jsonl")) << "it trained";
  }

  void expect_checked(const std::string& place, const std::vector<std::string>& words, int ranks,
                      bool scan_data = false) const {
    expect_message(
        message_of<UserError>([&] { check_text(resolved(), {.ranks = ranks, .scan_data = scan_data}); }),
        place, words);
  }

  void expect_message(const std::string& message, const std::string& place,
                      const std::vector<std::string>& words) const {
    EXPECT_THAT(message, StartsWith(place));
    for (const std::string& word : words) EXPECT_THAT(message, HasSubstr(word));
  }

  // A run of one step of the recipe with this setting.
  std::string another_run(const std::string& setting) const {
    LocalRunOptions options;
    options.ranks = 1;
    options.run_dir = folder_.path("other");
    options.quiet = true;
    const std::vector<std::string> overrides = {"train.max_duration=1ba", setting};
    train_in_one_process(resolve_recipe(read_recipe(kExamples + "digits.toml", overrides)), options);
    return options.run_dir;
  }

  const std::string kExamples = TUTTI_SOURCE_DIR "/examples/";
  Scratch folder_;
  std::string recipe_ = folder_.path("recipe.toml"), run_ = folder_.path("run");
  std::string resume_;
  std::vector<std::string> overrides_;
};

class WrongRecipes : public WrongRecipe, public testing::WithParamInterface<Mistake> {};

TEST_P(WrongRecipes, GetOneMessageHoweverTheyAreStarted) {
  const Mistake& mistake = GetParam();
  const std::string& named = mistake.named.empty() ? mistake.new_text : mistake.named;
  const std::string place = alter(mistake.old_text, mistake.new_text, named);
  expect_refused(mistake.has_line ? place : recipe_ + ":", mistake.words, mistake.ranks);
  expect_checked(mistake.has_line ? place : recipe_ + ":", mistake.words, mistake.ranks.back());
}

INSTANTIATE_TEST_SUITE_P(Digits, WrongRecipes, testing::ValuesIn(mistakes()),
                         [](const auto& info) { return info.param.name; });

TEST_F(WrongRecipe, NoRecipeAtAll) {
  fs::remove(recipe_);
  expect_refused(recipe_ + ": ", {"No such file"}, {1, 2, 3});
  expect_checked(recipe_ + ": ", {"No such file"}, 3);
}

TEST_F(WrongRecipe, ADeviceThatThisMachineLacks) {
  overrides_ = {"device.kind=cpu"};
  EXPECT_THAT(check_text(resolved(), {.all = true}), HasSubstr("kind = \"cpu\""));
  overrides_ = {"device.kind=abacus"};
  expect_checked("--set: device.kind = \"abacus\"", {"cpu"}, 1);
  overrides_.clear();
  if (DeviceLibrary::has_gpu_driver()) GTEST_SKIP() << "a driver for GPUs";
  std::string before = "[optimizer]";
  for (const char* kind : {"kind = \"gpu\"", "kind = \"cuda\""}) {
    const std::string place = alter(before, std::string("[device]\n") + kind + "\n\n[optimizer]", kind);
    before = std::string("[device]\n") + kind + "\n\n[optimizer]";
    const std::vector<std::string> words = {std::string("device.") + kind, "libtutti_cuda.so"};
    expect_refused(place, words, {1, 2});
    expect_checked(place, words, 2);
  }
}

// With all others; a section's name given as a key belongs elsewhere.
TEST_F(WrongRecipe, MembersOfATableInASection) {
  alter("keep = 3", "keep = 3\nbest = { metrc = 1, keep = 0 }", "best = ");
  alter("run_name =", "precision = \"bf16\"\nrun_name =", "precision");
  const std::string all = message_of<UserError>([&] { resolved(); });
  EXPECT_THAT(all, HasSubstr("[precision] with its keys below; it belongs in [train]"));
  EXPECT_THAT(all, HasSubstr("checkpoint.best.metrc = 1: unknown key; did you mean metric?"));
  EXPECT_THAT(all, HasSubstr("checkpoint.best.keep = 0: expected an integer in [1, 1e+06]"));
}

TEST_F(WrongRecipe, ATokenizerOfAnEvaluatorThatIsNotInTheCache) {
  const std::string text = "[[evaluators]]\nkind = \"text_table\"\ntokenizer = \"no-such-model\"\n[train]";
  const std::string place = alter("[train]", text, "tokenizer");
  EXPECT_THAT(message_of<UserError>([&] { resolved(); }),
              testing::AllOf(HasSubstr(place), HasSubstr("no model of this name")));
}

TEST_F(WrongRecipe, AnOverrideOfAnUnknownKey) {
  overrides_ = {"optimizer.momentun=0.5"};
  const std::vector<std::string> words = {"optimizer.momentun = 0.5", "did you mean momentum?"};
  expect_refused("--set: ", words, {1, 2, 3});
  expect_checked("--set: ", words, 3);
}

TEST_F(WrongRecipe, ATextThatIsNotUtf8) {
  overrides_ = {"run_name=a\xff"};
  expect_refused("--set: run_name = ", {"expected a text in UTF-8"}, {1, 2, 3});
  expect_checked("--set: run_name = ", {"expected a text in UTF-8"}, 3);
}

// digits.h5 with another label in the middle of the 1,437 to train on, which lie there in a row.
std::string digits_with(const std::string& digits, int64_t label) {
  constexpr std::size_t kLabels = 1437, kBytes = sizeof label;
  const std::string zeros(kBytes - 1, '\0');
  const auto is_label = [&](std::size_t at) {
    return static_cast<unsigned char>(digits[at]) < 10 && digits.compare(at + 1, zeros.size(), zeros) == 0;
  };
  std::size_t first = 0, count = 0;
  for (std::size_t at = 0; count < kLabels && at + kBytes <= digits.size(); at += is_label(at) ? kBytes : 1) {
    count = is_label(at) ? count + 1 : 0;
    if (count == 1) first = at;
  }
  EXPECT_EQ(count, kLabels);
  std::string changed = digits;
  changed.replace(first + kLabels / 2 * kBytes, kBytes, reinterpret_cast<const char*>(&label), kBytes);
  return changed;
}

TEST_F(WrongRecipe, LabelsOutOfRange) {
  const std::string path = "path = \"data/digits.h5\"\ngroup = \"train\"";
  const std::string place = alter(path, "path = \"digits.h5\"\ngroup = \"train\"", "path = \"digits.h5\"");
  for (const int label : {-1, 99}) {
    SCOPED_TRACE(label);
    write_text(folder_.path("digits.h5"), digits_with(read_text(kExamples + "data/digits.h5"), label));
    const std::vector<std::string> words = {"data.train.path", "'train/target', row ",
                                            std::to_string(label) + " is not in [0, 10)"};
    expect_refused(place, words, {1, 2, 3});
    expect_checked(place, words, 3, /*scan_data=*/true);
  }
}

// A checkpoint to resume from that does not fit, named on the command line and in the recipe.
class WrongCheckpoint : public WrongRecipe {
 protected:
  void expect_refused_on_the_command_line(const std::string& other, const std::vector<std::string>& words,
                                          const std::vector<int>& ranks = {1, 2, 3}) {
    resume_ = other;
    expect_refused("command line: --resume = \"" + other + "\": ", words, ranks);
    resume_.clear();
  }
  std::string name_in_recipe(const std::string& other) {
    return alter("keep = 3", "resume = \"" + other + "\"", "resume");
  }
};

TEST_F(WrongCheckpoint, OfAnotherModel) {
  const std::string other = another_run("model.hidden=[32]");
  std::vector<std::string> words = {"model/0.weight", "[32, 64]", "[128, 64]"};
  expect_refused_on_the_command_line(other, words);
  const std::string place = name_in_recipe(other);
  words.push_back("checkpoint.resume = \"" + other + "\"");
  expect_refused(place, words, {1, 2, 3});
  expect_checked(place, words, 3);
}

TEST_F(WrongCheckpoint, OfAnotherSeed) {
  const std::string other = another_run("seed=3");
  expect_refused_on_the_command_line(other, {"seed 3", "17"});
  const std::string place = name_in_recipe(other);
  expect_checked(place, {"checkpoint.resume = \"" + other + "\"", "seed 3"}, 1);
}

TEST_F(WrongCheckpoint, OfAnotherOrderOfSamplesInMidRun) {
  const std::string other = another_run("data.train.drop_last=false");
  overrides_ = {"data.train.drop_last=true"};
  expect_refused_on_the_command_line(other, {"data.train.drop_last = false"}, {2});
}

TEST_F(WrongCheckpoint, AMissingFolderIsRefused) {
  const std::string place = name_in_recipe("nowhere");
  const std::vector<std::string> words = {"checkpoint.resume = \"", "nowhere",
                                          "there is no such folder; expected that of a checkpoint"};
  expect_refused(place, words, {1, 2, 3});
  expect_checked(place, words, 3);
}

TEST_F(WrongCheckpoint, AFolderThatIsNoCheckpointCannotBeEvaluated) {
  for (const std::string& named : {recipe_, folder_.path("nowhere"), another_run("model.hidden=[32]")}) {
    const std::string said = message_of<UserError>([&] { eval_text(resolved(), named); });
    expect_message(said, "command line: --checkpoint = \"" + named + "\": ", {named});
  }
}

// Initial weights that do not fit.
class WrongWeights : public WrongRecipe {
 protected:
  void expect_refused_weights(const std::string& weights, const std::string& hidden,
                              const std::string& word) {
    const std::string line = "weights = \"" + weights + "\"";
    const std::string place = alter("hidden = [128, 64]", hidden + line, line);
    const std::vector<std::string> words = {"model.weights = \"", fs::path(weights).filename(), word};
    expect_refused(place, words, {1, 2, 3});
    expect_checked(place, words, 3);
  }
};

TEST_F(WrongWeights, OfAnotherModel) {
  expect_refused_weights(another_run("model.hidden=[32]") + "/checkpoints/latest", "hidden = [128, 64]\n",
                         "0.weight");
}

TEST_F(WrongWeights, AMissingFileIsRefused) {
  expect_refused_weights("none.safetensors", "", "none.safetensors");
}

TEST_F(WrongWeights, AFileCopiedWithoutThoseItMapsIsRefused) {
  fs::copy_file(another_run("seed=17") + "/checkpoints/latest/checkpoint.h5", folder_.path("alone.h5"));
  expect_refused_weights(folder_.path("alone.h5"), "hidden = [128, 64]\n",
                         "needs the file 'rank-0.h5', which does not exist");
}

}  // namespace
}  // namespace tutti
