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

constexpr std::size_t kSavedAt = 10, kContinued = 10;  // steps
constexpr double kTolerance = 1e-5;

std::string golden_file(const std::string& file) {
  return std::string(TUTTI_SOURCE_DIR) + "/tests/golden/" + file;
}

// A run that another program began.
struct ForeignRun {
  std::string name;        // in losses.json
  std::string checkpoint;  // in the folder
  std::string model, group, more;
  std::string folder = "composer_checkpoints/";

  std::string path() const { return golden_file(folder + checkpoint); }
  std::string recipe(const std::string& and_more = "") const {
    return "run_name = 'imported'\nseed = 1\n[model]\n" + model + "\n[data.train]\nkind = 'hdf5'\npath = '" +
           golden_file(folder + "data.h5") + "'\ngroup = '" + group +
           "'\nbatch_size = 8\nshuffle = false\n[train]\nmax_duration = '4ep'\n" + more + and_more;
  }
  std::string loading(const std::string& keys = "") const {
    return recipe("[checkpoint]\nload_path = '" + path() + "'\n" + keys);
  }
};
void PrintTo(const ForeignRun& run, std::ostream* out) { *out << run.name; }

constexpr const char* kOfComposer =
    "[scheduler]\nkind = 'cosine_annealing_with_warmup'\nt_warmup = '4ba'\n"
    "[[algorithms]]\nkind = 'ema'\nhalf_life = '4ba'\n"
    "[compat]\ncomposer = true\n";
const ForeignRun kWhole{
    "whole", "whole.pt",
    R"x(kind = "sequential"
       layers = ["Conv2d(1, 4, kernel_size=3, bias=False)", "BatchNorm2d(4)", "ReLU()",
                 "Conv2d(4, 3, kernel_size=2)", "Flatten()", "Linear(27, 5)"])x",
    "train",
    std::string("[optimizer]\nkind = 'decoupled_adamw'\nlr = 0.02\nweight_decay = 1e-3\n") + kOfComposer};
const ForeignRun kSharded{"sharded", "sharded",
                          R"x(kind = "sequential"
       layers = ["Flatten()", "Linear(36, 8)", "LayerNorm(8)", "GELU()", "Linear(8, 5)"])x",
                          "train", std::string("[optimizer]\nkind = 'adam'\nlr = 0.02\n") + kOfComposer};
const ForeignRun kAveraged{"swa", "swa.pt", kSharded.model, "train",
                           "[optimizer]\nkind = 'decoupled_adamw'\nlr = 0.02\nweight_decay = 1e-3\n"
                           "[scheduler]\nkind = 'cosine_annealing_with_warmup'\nt_warmup = '4ba'\n"
                           "[[algorithms]]\nkind = 'swa'\nswa_start = '0.2dur'\nswa_end = '0.6dur'\n"
                           "update_interval = '1ba'\nanneal_steps = 8\n[compat]\ncomposer = true\n"};
const ForeignRun kLightning{"lightning",
                            "lightning.ckpt",
                            R"x(kind = "sequential"
       layers = ["Flatten()", "Linear(36, 8)", "BatchNorm1d(8)", "GELU()", "Linear(8, 5)"])x",
                            "images",
                            "[optimizer]\nkind = 'adamw'\nlr = 0.02\nweight_decay = 0.1\n",
                            "other_checkpoints/"};
const ForeignRun kTrainer{"trainer",
                          "checkpoint-10",
                          "kind = 'hf'\npath = '" + golden_file("other_checkpoints/checkpoint-10") + "'",
                          "tokens",
                          "[optimizer]\nkind = 'adamw'\nlr = 0.01\nweight_decay = 0.1\n"
                          "no_decay = ['*.bias', '*ln_*']\n",
                          "other_checkpoints/"};

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

  // The other program's losses, and its rates, if known, behind its checkpoint.
  void expect_continued(const ForeignRun& run) {
    const auto golden = nlohmann::json::parse(read_text(golden_file(run.folder + "losses.json")))[run.name];
    const bool has_rates = golden.is_object();
    expect_near(logged(run_, "loss"), has_rates ? golden["loss"] : golden, kSavedAt);
    if (has_rates) expect_near(logged(run_, "lr"), golden["lr"], kSavedAt - 1);
  }
  static void expect_near(const std::vector<double>& got, const nlohmann::json& golden, std::size_t first) {
    ASSERT_GE(got.size(), kContinued);
    for (std::size_t i = 0; i < kContinued; ++i)
      EXPECT_NEAR(got[i], golden[first + i].get<double>(), kTolerance) << "step " << kSavedAt + i;
  }

  Scratch folder_;
  PosixDisk disk_;
  std::string run_ = folder_.path("run");
};

TEST_P(ImportTest, ARunContinuesAsTheOtherProgramDid) {
  train(GetParam().loading());
  expect_continued(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Runs, ImportTest, testing::Values(kWhole, kSharded, kAveraged, kLightning, kTrainer),
                         [](const auto& info) { return info.param.name; });

class ImportedFile : public ImportTest {};

TEST_F(ImportedFile, IsACheckpointOfTheRecipesRun) {
  const std::string text =
      import_text(recipe_of(kWhole.recipe()), {.path = kWhole.path(), .out = run_ + "/checkpoints/ep1-ba10"});
  EXPECT_THAT(text, HasSubstr("taken over: 10 tensors of the model, 21 of the optimizer, 10 averages of EMA, "
                              "the time (step 10, epoch 1)"));
  EXPECT_THAT(text, HasSubstr("not taken over: random generators"));
  train(kWhole.recipe(), "auto");
  expect_continued(kWhole);
}

// Lightning saves there by default.
TEST_F(ImportedFile, OfAnEpochsEndBeginsTheNextEpoch) {
  ForeignRun end = kLightning;
  end.checkpoint = "lightning_end.ckpt";
  train(end.loading());
  EXPECT_EQ(logged(run_, "loss").size(), 28u - 7u);
}

TEST_F(ImportedFile, NamesWhatTheRecipeHasNoPlaceFor) {
  const std::string ema = "[[algorithms]]\nkind = 'ema'\nhalf_life = '4ba'\n";
  ForeignRun without = kWhole;
  without.more.erase(without.more.find(ema), ema.size());
  EXPECT_THAT(import_text(recipe_of(without.recipe()), {.path = kWhole.path(), .out = folder_.path("out")}),
              testing::AllOf(HasSubstr("21 of the optimizer, the time"),
                             HasSubstr("not taken over: 'algorithms/EMA/")));
  const std::string lora = kTrainer.loading("[[algorithms]]\nkind = 'lora'\n");
  EXPECT_THAT(message_of<UserError>([&] { check_text(recipe_of(lora), {}); }), HasSubstr("lora_A.weight"));
}

TEST_F(ImportedFile, SaysWhyTheOptimizerBeginsAnew) {
  const auto text_of = [&](ForeignRun run, const std::string& optimizer, const std::string& more = "") {
    run.more = optimizer + more;
    return import_text(recipe_of(run.recipe()), {.path = run.path(), .out = unused_path(disk_, run_)});
  };
  const std::string sgd = "[optimizer]\nkind = 'sgd'\nlr = 0.1\nmomentum = 0.9\n";
  EXPECT_THAT(text_of(kSharded, sgd), HasSubstr("does not keep 'exp_avg': another kind of optimizer"));
  EXPECT_THAT(text_of(kLightning, "[optimizer]\nkind = 'adamw'\nlr = 0.1\n",
                      "[[algorithms]]\nkind = 'ema'\nhalf_life = '4ba'\n"),
              HasSubstr("averages of EMA, which begin from the weights: the checkpoint has none"));
  EXPECT_THAT(
      text_of(kTrainer, kTrainer.more),
      testing::AllOf(HasSubstr("guessed: step 3 of epoch 1, by this recipe's batches"),
                     HasSubstr("guessed: 80 samples"), HasSubstr("tokens, which are counted from 0")));
}

// The processes save in an order of their own; the optimizer counts the parameters.
TEST_F(ImportedFile, OfSeveralProcessesHasItsOptimizer) {
  const std::string recipe =
      "run_name = 'two'\nseed = 1\n[model]\nkind = 'sequential'\n"
      "layers = ['Linear(4, 4)', 'Tanh()', 'Linear(4, 4)']\n"
      "[data.train]\nkind = 'synthetic'\nshape = [4]\nclasses = 4\nsamples = 8\nbatch_size = 4\n"
      "[optimizer]\nkind = 'adamw'\nlr = 0.01\n[train]\nmax_duration = '2ba'\n";
  EXPECT_THAT(
      import_text(recipe_of(recipe), {.path = golden_file("torch_checkpoints/two_processes"), .out = run_}),
      HasSubstr("4 tensors of the model, 12 of the optimizer, the time (step 1)"));
  const auto saved = read_checkpoint(disk_, run_).tensors;
  float expected = 0;
  for (const char* name : {"0.weight", "0.bias", "2.weight", "2.bias"}) {
    const at::Tensor average = saved.at(std::string(kOptimizersPrefix) + name + "/exp_avg");
    expected += 0.1F;
    EXPECT_LT((average - expected).abs().max().item<float>(), 1e-6) << name;
  }
}

TEST_F(ImportedFile, WithoutItsAlgorithmKeepsNoStateOfIt) {
  ForeignRun without = kSharded;
  without.more = "[optimizer]\nkind = 'adam'\nlr = 0.02\n";
  import_text(recipe_of(without.recipe()), {.path = kSharded.path(), .out = run_});
  EXPECT_TRUE(state_of(open_checkpoint(disk_, run_)).listeners.empty());
}

TEST_F(ImportedFile, OfSafetensorsHasWeightsAlone) {
  EXPECT_THAT(import_text(recipe_of(kTrainer.recipe("[checkpoint]\nload_strict_model_weights = false\n")),
                          {.path = kTrainer.path() + "/model.safetensors", .out = run_}),
              testing::AllOf(HasSubstr("tensors of the model"),
                             HasSubstr("the optimizer's state, which begins anew: the checkpoint has none"),
                             HasSubstr("the time, which begins at 0")));
}

TEST_F(ImportedFile, OfWeightsAloneStartsAfresh) {
  train(kSharded.loading("load_weights_only = true\n"), "", 2);
  EXPECT_EQ(logged(run_, "loss").size(), 28u);
}

TEST_F(ImportedFile, OfAnotherModelIsAnErrorOfCheck) {
  ForeignRun other = kSharded;
  other.checkpoint = "whole.pt";
  EXPECT_THAT(message_of<UserError>([&] { check_text(recipe_of(other.loading()), {}); }),
              testing::AllOf(HasSubstr("load_path"), HasSubstr("whole.pt")));
}

TEST_F(ImportedFile, OfAnUnknownLayoutNamesWhatWasLookedFor) {
  EXPECT_THAT(
      message_of<UserError>([&] { import_text(recipe_of(kWhole.recipe()), {.path = golden_file("")}); }),
      HasSubstr(".metadata"));
}

TEST_F(ImportedFile, ComesFromAnExportOfTutti) {
  train(kWhole.recipe());
  const std::string plain = folder_.path("plain.pt"), composer = folder_.path("composer.pt");
  export_text({.path = run_, .to_torch = plain, .trained = true});
  export_text({.path = run_, .to_torch = composer, .layout = "composer", .trained = true});
  const auto saved = read_checkpoint(disk_, run_ + "/checkpoints/latest").tensors;
  for (const std::string& path : {plain, composer}) {
    const Checkpoint foreign = foreign_checkpoint(disk_, path);
    const CheckpointTensors tensors(disk_, foreign, kModelPrefix);
    const std::string prefix = path == plain ? "" : "module.";
    EXPECT_EQ(tensors.entries().size(), 10u) << path;
    for (const auto& [name, tensor] : saved)
      if (name.starts_with(kModelPrefix))
        EXPECT_TRUE(read_all(tensors, prefix + name.substr(kModelPrefix.size())).equal(tensor)) << name;
  }
}

}  // namespace
}  // namespace tutti
