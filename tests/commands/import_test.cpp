// Checkpoints of other programs in whole runs (tests/golden/make_composer_checkpoints.py).

#include "commands/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "commands/check.h"
#include "commands/export.h"
#include "commands/local_train.h"
#include "io/checkpoint/checkpoint.h"
#include "io/checkpoint/saved_state.h"
#include "io/foreign/foreign_checkpoint.h"
#include "recipe/toml_reader.h"
#include "tests/actors/sleeping_world.h"
#include "tests/io/checkpoint/whole_checkpoint.h"

namespace tutti {
namespace {

using testing::HasSubstr;

constexpr std::size_t kSavedAt = 10, kContinued = 10;  // batches
constexpr double kTolerance = 1e-5;

std::string composers(const std::string& file) {
  return std::string(TUTTI_SOURCE_DIR) + "/tests/golden/composer_checkpoints/" + file;
}

struct ForeignRun {
  std::string name, checkpoint, model, optimizer;
};
void PrintTo(const ForeignRun& run, std::ostream* out) { *out << run.name; }

const ForeignRun kWhole{
    "whole", "whole.pt",
    R"(["Conv2d(1, 4, kernel_size=3, bias=False)", "BatchNorm2d(4)", "ReLU()",
        "Conv2d(4, 3, kernel_size=2)", "Flatten()", "Linear(27, 5)"])",
    "kind = 'decoupled_adamw'\nlr = 0.02\nweight_decay = 1e-3\n"};
const ForeignRun kSharded{"sharded", "sharded",
                          R"(["Flatten()", "Linear(36, 8)", "LayerNorm(8)", "GELU()", "Linear(8, 5)"])",
                          "kind = 'adam'\nlr = 0.02\n"};

std::string recipe_text_of(const ForeignRun& run, const std::string& more = "") {
  return "run_name = 'imported'\nseed = 1\n[model]\nkind = 'sequential'\nlayers = " + run.model +
         "\n[data.train]\nkind = 'hdf5'\npath = '" + composers("data.h5") +
         "'\ngroup = 'train'\nbatch_size = 8\nshuffle = false\n[optimizer]\n" + run.optimizer +
         "[scheduler]\nkind = 'cosine_with_warmup'\nt_warmup = '4ba'\n[train]\nmax_duration = '4ep'\n"
         "[[algorithms]]\nkind = 'ema'\nhalf_life = '4ba'\n[compat]\ncomposer = true\n" +
         more;
}

std::vector<double> logged(const std::string& run, const char* name) {
  std::vector<double> values;
  std::istringstream lines(read_text(run + "/metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    const auto fields = nlohmann::json::parse(line);
    if (fields.contains(name)) values.push_back(fields[name].get<double>());
  }
  return values;
}

class ImportTest : public testing::TestWithParam<ForeignRun> {
 protected:
  void train(const std::string& recipe, const std::string& resume = "", int ranks = 1) {
    LocalRunOptions options;
    options.quiet = true;
    options.ranks = ranks;
    options.run_dir = run_;
    options.resume = resume;
    ASSERT_EQ(train_in_one_process(recipe_of(recipe), options).exit_code, 0);
  }

  // Composer's losses and rates behind its checkpoint.
  void expect_composers(const ForeignRun& run) {
    const auto golden = nlohmann::json::parse(read_text(composers("losses.json")))[run.name];
    for (const char* name : {"loss", "lr"}) {
      const std::vector<double> got = logged(run_, name);
      ASSERT_GE(got.size(), kContinued) << name;
      for (std::size_t i = 0; i < kContinued; ++i)
        EXPECT_NEAR(got[i], golden[name][kSavedAt + i].get<double>(), kTolerance)
            << name << " of batch " << i;
    }
  }

  Scratch folder_;
  PosixDisk disk_;
  std::string run_ = folder_.path("run");
};

TEST_P(ImportTest, ARunContinuesAsComposerDid) {
  train(recipe_text_of(GetParam(), "[checkpoint]\nload_path = '" + composers(GetParam().checkpoint) + "'\n"));
  expect_composers(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Composer, ImportTest, testing::Values(kWhole, kSharded),
                         [](const auto& info) { return info.param.name; });

class ImportedFile : public ImportTest {};

TEST_F(ImportedFile, IsACheckpointOfTheRecipesRun) {
  const std::string text =
      import_text(recipe_of(recipe_text_of(kWhole)),
                  {.path = composers("whole.pt"), .out = run_ + "/checkpoints/ep1-ba10"});
  EXPECT_THAT(text, HasSubstr("taken over: 9 tensors of the model, 21 of the optimizer, 9 averages of EMA, "
                              "the time (step 10, epoch 1)"));
  EXPECT_THAT(text, HasSubstr("not taken over: random generators"));
  train(recipe_text_of(kWhole), "auto");
  expect_composers(kWhole);
}

TEST_F(ImportedFile, OfWeightsAloneStartsAfresh) {
  train(recipe_text_of(
            kWhole, "[checkpoint]\nload_weights_only = true\nload_path = '" + composers("whole.pt") + "'\n"),
        "", 2);
  EXPECT_EQ(logged(run_, "loss").size(), 28u);
}

TEST_F(ImportedFile, IsCheckedBeforeTraining) {
  const std::string recipe =
      recipe_text_of(kSharded, "[checkpoint]\nload_path = '" + composers("whole.pt") + "'\n");
  EXPECT_THAT(message_of<UserError>([&] { check_text(recipe_of(recipe), {}); }),
              testing::AllOf(HasSubstr("load_path"), HasSubstr("whole.pt")));
}

TEST_F(ImportedFile, OfAnUnknownLayoutNamesWhatWasLookedFor) {
  EXPECT_THAT(
      message_of<UserError>([&] { import_text(recipe_of(recipe_text_of(kWhole)), {.path = composers("")}); }),
      HasSubstr(".metadata"));
}

TEST_F(ImportedFile, ComesFromAnExportOfTutti) {
  train(recipe_text_of(kWhole));
  const std::string plain = folder_.path("plain.pt"), composer = folder_.path("composer.pt");
  export_text({.path = run_, .to_torch = plain, .trained = true});
  export_text({.path = run_, .to_torch = composer, .layout = "composer", .trained = true});
  const auto saved = read_checkpoint(disk_, run_ + "/checkpoints/latest").tensors;
  for (const std::string& path : {plain, composer}) {
    const Checkpoint foreign = foreign_checkpoint(disk_, path);
    const CheckpointTensors tensors(disk_, foreign, kModelPrefix);
    const std::string prefix = path == plain ? "" : "module.";
    EXPECT_EQ(tensors.entries().size(), 9u) << path;
    for (const auto& [name, tensor] : saved)
      if (name.starts_with(kModelPrefix))
        EXPECT_TRUE(read_all(tensors, prefix + name.substr(kModelPrefix.size())).equal(tensor)) << name;
  }
}

}  // namespace
}  // namespace tutti
