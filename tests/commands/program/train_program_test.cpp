#include "commands/program/train_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/error.h"
#include "tests/io/checkpoint/whole_checkpoint.h"
#include "tests/runtime/scratch.h"

namespace tutti {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// The words of a command line behind the program's name, with the lifetime that main gives them.
struct ProgramLine {
  explicit ProgramLine(std::vector<std::string> arguments) : words(std::move(arguments)) {
    words.insert(words.begin(), "mine");
    for (std::string& word : words) pointers.push_back(word.data());
  }
  int argc() const { return static_cast<int>(pointers.size()); }
  std::vector<std::string> words;
  std::vector<char*> pointers;
};

Trainer::Options read(std::vector<std::string> words, Trainer::Options defaults = {}) {
  ProgramLine line(std::move(words));
  return with_arguments(std::move(defaults), line.argc(), line.pointers.data());
}

std::string refusal(std::vector<std::string> words, Trainer::Options defaults = {}) {
  return message_of<UserError>([&] { read(std::move(words), std::move(defaults)); });
}

TEST(ProgramArguments, AreThoseOfTrain) {
  const Trainer::Options options =
      read({"a.toml", "--set", "optimizer.lr=0.1", "--set=train.max_duration=2ba", "--run-dir", "runs/a",
            "--local-ranks", "2", "--json"});
  EXPECT_EQ(options.recipe, "a.toml");
  EXPECT_THAT(options.overrides, ElementsAre("optimizer.lr=0.1", "train.max_duration=2ba"));
  EXPECT_EQ(options.run_dir, "runs/a");
  EXPECT_EQ(options.resume, "");
  EXPECT_EQ(options.local_ranks, 2);
  EXPECT_TRUE(options.json);
}

TEST(ProgramArguments, ResumeHasACheckpointOrNone) {
  Scratch folder;
  write_text(folder.path("a.toml"), "");
  EXPECT_EQ(read({"a.toml", "--resume"}).resume, "auto");
  EXPECT_EQ(read({"a.toml", "--resume", "--json"}).resume, "auto");
  EXPECT_EQ(read({"a.toml", "--resume", "runs/a"}).resume, "runs/a");
  EXPECT_EQ(read({"a.toml", "--resume=runs/a"}).resume, "runs/a");
  const Trainer::Options before = read({"--resume", folder.path("a.toml")});
  EXPECT_EQ(before.resume, "auto");
  EXPECT_EQ(before.recipe, folder.path("a.toml"));
}

TEST(ProgramArguments, AProgramMayHaveARecipeOfItsOwn) {
  EXPECT_EQ(read({}, {.recipe = "own.toml"}).recipe, "own.toml");
  EXPECT_EQ(read({"a.toml"}, {.recipe = "own.toml"}).recipe, "a.toml");
  EXPECT_THAT(read({"a.toml"}, {.recipe = "own.toml"}).overrides, IsEmpty());
  EXPECT_THAT(refusal({}), HasSubstr("expected a recipe"));
}

TEST(ProgramArguments, WrongWordsAreNamed) {
  EXPECT_THAT(refusal({"a.toml", "b.toml"}), HasSubstr("b.toml was not expected: the recipe is a.toml"));
  EXPECT_THAT(refusal({"a.toml", "--sett", "a=b"}), HasSubstr("did you mean --set?"));
  EXPECT_THAT(refusal({"a.toml", "--jsn"}), HasSubstr("did you mean --json?"));
  EXPECT_THAT(refusal({"a.toml", "--json=1"}), HasSubstr("json was given a disallowed flag override"));
  EXPECT_THAT(refusal({"a.toml", "--set"}), HasSubstr("--set: 1 required"));
  EXPECT_THAT(refusal({"a.toml", "--run-dir", ""}), HasSubstr("--run-dir: expected a value"));
  EXPECT_THAT(refusal({"a.toml", "--run-dir="}), HasSubstr("--run-dir: 1 required"));
  for (const char* ranks : {"0", "x", "2x", "1025", "-1"})
    EXPECT_THAT(refusal({"a.toml", "--local-ranks", ranks}), HasSubstr("--local-ranks"));
}

struct ProgramNet : torch::nn::Module {
  explicit ProgramNet(const SampleSpec& samples)
      : last(register_module("last", torch::nn::Linear(samples.shapes.at("input")[0], samples.classes))) {}
  at::Tensor forward(const at::Tensor& x) { return last(x); }
  torch::nn::Linear last;
};

constexpr const char* kProgramRecipe = R"(
seed = 5
[model]
kind = "program"
[data.train]
kind = "synthetic"
samples = 60
batch_size = 12
shape = [6]
[optimizer]
kind = "adam"
lr = 0.01
[train]
max_duration = "2ba"
progress_bar = false
)";

TEST(TrainProgram, TrainsAModuleOnSeveralRanksOfThisProcess) {
  Scratch folder;
  write_text(folder.path("a.toml"), kProgramRecipe);
  const auto trained = [&](const std::string& run, const std::string& ranks, const std::string& strategy) {
    ProgramLine line({folder.path("a.toml"), "--run-dir", folder.path(run), "--local-ranks", ranks, "--set",
                      "sharding.strategy=" + strategy});
    EXPECT_EQ(train_program<ProgramNet>(line.argc(), line.pointers.data()), 0);
    return newest_checkpoint(folder.path(run)).tensors;
  };
  const auto plain = trained("plain", "2", "none"), sharded = trained("sharded", "2", "full");
  EXPECT_EQ(plain.at("model/last.weight").sizes(), (std::vector<int64_t>{10, 6}));
  EXPECT_TRUE(plain.at("model/last.weight").equal(sharded.at("model/last.weight")));
}

TEST(TrainProgram, AMistakeInTheRecipeEndsItWithTwo) {
  Scratch folder;
  write_text(folder.path("a.toml"), std::string(kProgramRecipe) + "nothing = 1\n");
  for (const std::string ranks : {"1", "2"}) {
    ProgramLine line({folder.path("a.toml"), "--local-ranks", ranks});
    testing::internal::CaptureStderr();
    EXPECT_EQ(train_program<ProgramNet>(line.argc(), line.pointers.data()), 2);
    EXPECT_THAT(testing::internal::GetCapturedStderr(),
                HasSubstr("a.toml:16: train.nothing = 1: unknown key"));
  }
  ProgramLine absent({folder.path("a.toml"), "--sett"});
  testing::internal::CaptureStderr();
  EXPECT_EQ(train_program<ProgramNet>(absent.argc(), absent.pointers.data()), 2);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("did you mean --set?"));
}

}  // namespace
}  // namespace tutti
