#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "job/names/foreign_names.h"
#include "job/recipe_catalogs.h"
#include "recipe/toml_reader.h"
#include "runtime/user_errors.h"

namespace tutti {
namespace {

using testing::HasSubstr;
using Overrides = std::vector<std::string>;

constexpr const char* kRecipe = R"([model]
kind = "mlp"
hidden = [8]
[data.train]
kind = "synthetic"
batch_size = 96
[optimizer]
kind = "sgd"
lr = 0.1
[train]
max_duration = "20ep"
)";

// The recipe with `text` in the place of a line, or as the first line of a section.
std::string with_line(const std::string& line, const std::string& text) {
  std::string recipe = kRecipe;
  const std::size_t at = recipe.find(line + '\n');
  EXPECT_NE(at, recipe.npos) << line;
  return recipe.replace(at, line.size(), text);
}

std::string with_first(const std::string& heading, const std::string& text) {
  return with_line(heading, heading + '\n' + text);
}

std::string message_of(const std::string& recipe, const Overrides& overrides = {}) {
  try {
    resolve_recipe(parse_recipe(recipe, "r.toml", overrides));
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

// Of a recipe with one mistake: its first line, without the place.
std::string said(const std::string& recipe) {
  const std::string whole = message_of(recipe), line = whole.substr(0, whole.find('\n'));
  EXPECT_EQ(whole.find("error: "), whole.npos) << whole;
  return line.substr(line.find(": ") + 2);
}

TEST(RecipeMistakes, AreAllSaidAtOnceWithTheirLines) {
  const std::string recipe =
      "[model]\nkind = \"mlp\"\nhidden = 8\n"
      "[data.train]\nkind = \"synthetic\"\nbatch_size = 9.5\nshufle = true\n"
      "[optimizer]\nkind = \"torch.optim.SGD\"\nlr = \"1e-3\"\nmomentun = 0.9\n"
      "[train]\nmax_duration = 3\nlr = 0.1\n";
  EXPECT_EQ(message_of(recipe, {"collectives.backend=mpii"}),
            R"(r.toml:3: model.hidden = 8: expected a list of integers in [1, 1e+09]; did you mean [8]?
    3 | hidden = 8
      |          ^

error: r.toml:6: data.train.batch_size = 9.5: expected an integer in [1, 1e+09]
    6 | batch_size = 9.5
      |              ^^^

error: r.toml:7: data.train.shufle = true: unknown key of dataset synthetic; did you mean shuffle?
    7 | shufle = true
      | ^^^^^^

error: r.toml:9: optimizer.kind = "torch.optim.SGD": unknown optimizer; did you mean sgd?
    9 | kind = "torch.optim.SGD"
      |        ^^^^^^^^^^^^^^^^^

error: r.toml:10: optimizer.lr = "1e-3": expected a number >= 0; did you mean 0.001?
   10 | lr = "1e-3"
      |      ^^^^^^

error: r.toml:11: optimizer.momentun = 0.9: unknown key of optimizer sgd; did you mean momentum?
   11 | momentun = 0.9
      | ^^^^^^^^

error: r.toml:14: train.lr = 0.1: unknown key; it belongs in [optimizer]
   14 | lr = 0.1
      | ^^

error: --set: collectives.backend = "mpii": expected one of auto, local, mpi, nccl; did you mean "mpi"?
      | --set collectives.backend=mpii
      |                           ^^^^

8 errors in r.toml)");
}

TEST(RecipeMistakes, AreMarkedWhereTheyStand) {
  const auto below = [](const std::string& recipe, const Overrides& overrides = {}) {
    const std::string whole = message_of(recipe, overrides);
    return whole.substr(whole.find('\n') + 1);
  };
  EXPECT_EQ(below(with_line("[optimizer]", "[optimiser] # which")),
            "    7 | [optimiser] # which\n      |  ^^^^^^^^^");
  EXPECT_EQ(below(with_first("[model]", "layers.kind = 3")), "    2 | layers.kind = 3\n      | ^^^^^^");
  EXPECT_EQ(below(with_line("hidden = [8]", "hidden = [8, \"x\"]")),
            "    3 | hidden = [8, \"x\"]\n      |              ^^^");
  EXPECT_EQ(below(with_line("hidden = [8]", "hidden = [")), "    4 | [data.train]\n      |  ^");
  EXPECT_EQ(below(with_line("kind = \"sgd\"", "")), "    7 | [optimizer]\n      |  ^^^^^^^^^");
  EXPECT_EQ(below(kRecipe, {"optimizer.momentun=0.5"}),
            "      | --set optimizer.momentun=0.5\n      |                 ^^^^^^^^");
  EXPECT_EQ(below(kRecipe, {"trian.max_duration=5ep"}),
            "      | --set trian.max_duration=5ep\n      |       ^^^^^");
  EXPECT_EQ(below(kRecipe, {"optimizer.lr.x=1"}),
            "      | --set optimizer.lr.x=1\n      |                    ^");
}

TEST(RecipeMistakes, OfOneNameAreOneMistake) {
  EXPECT_EQ(said(with_line("max_duration = \"20ep\"", "max_duratoin = \"20ep\"")),
            "train.max_duratoin = \"20ep\": unknown key; did you mean max_duration?");
  EXPECT_EQ(said(with_line("max_duration = \"20ep\"", "num_epochs = 20")),
            "train.num_epochs = 20: unknown key; PyTorch's num_epochs is [train] max_duration: as in "
            "max_duration = \"20ep\"; steps are \"500ba\"");
  EXPECT_EQ(said(with_line("[optimizer]", "[optimiser]")),
            "[optimiser]: unknown section; did you mean optimizer?");
  EXPECT_EQ(said(with_line("batch_size = 96", "batchsize = 96")),
            "data.train.batchsize = 96: unknown key of dataset synthetic; did you mean batch_size?");
  EXPECT_EQ(said("max_duration = \"20ep\"\n" + with_line("max_duration = \"20ep\"", "")),
            "max_duration = \"20ep\": unknown key; it belongs in [train]");
  EXPECT_EQ(said(with_line("batch_size = 96", "batch_size = \"many\"")),
            "data.train.batch_size = \"many\": expected an integer in [1, 1e+09]");
}

TEST(RecipeMistakes, AKeySaysWhereItBelongs) {
  const auto in_train = [](const std::string& line) {
    const std::string text = said(with_first("[train]", line));
    return text.substr(text.find("unknown key"));
  };
  EXPECT_EQ(in_train("dampening = 0.9"),
            "unknown key; it belongs in [optimizer] of kind sgd or decoupled_sgdw");
  EXPECT_EQ(in_train("batch_size = 8"),
            "unknown key; it belongs in [data.train], [data.eval] or [[evaluators]]");
  EXPECT_EQ(in_train("save_folder = \"x\""),
            "unknown key; it belongs in [checkpoint] or [[callbacks]] of kind hf_checkpointer");
  EXPECT_EQ(in_train("gradient_clip_val = 1.0"),
            "unknown key; Lightning's gradient_clip_val is [[algorithms]] kind = \"gradient_clipping\": "
            "clipping_type = \"norm\" or \"value\", and clipping_threshold");
  EXPECT_EQ(
      in_train("devices = 2"),
      "unknown key; Lightning's devices: not carried over: `mpirun -np 4 tutti train RECIPE` says how many "
      "ranks train");
  EXPECT_EQ(in_train("learning_rate = 0.1"), "unknown key; PyTorch's learning_rate is [optimizer] lr");
  EXPECT_THAT(in_train("compile_config = 1"), HasSubstr("Composer's compile_config: not carried over: "));
  EXPECT_THAT(said("train_dataloader = 3\n" + std::string(kRecipe)),
              HasSubstr("Composer's train_dataloader is [data.train]"));
  EXPECT_THAT(said("path = 3\n" + std::string(kRecipe)),
              HasSubstr("it belongs in [model] of kind exported, torchscript or hf, [data.train]"));
  EXPECT_EQ(
      said(with_line("lr = 0.1", "learning_rate = 0.1")),
      "optimizer.learning_rate = 0.1: unknown key of optimizer sgd; PyTorch's learning_rate is [optimizer] "
      "lr");
  EXPECT_EQ(said(with_first("[train]", "bathc_size = 8")),
            "train.bathc_size = 8: unknown key; did you mean [data.train] batch_size?");
}

// A block of llm-foundry's, as TOML.
TEST(RecipeMistakes, AKeyOfOneSectionMayBeSomebodyElses) {
  EXPECT_THAT(said(with_first("[model]", "pretrained = true")),
              HasSubstr("llm-foundry's model.pretrained is [model] kind = \"hf\""));
  EXPECT_THAT(said(with_first("[model]", "name = \"hf_causal_lm\"")),
              HasSubstr("llm-foundry's model.name is [model] kind"));
  EXPECT_THAT(said(with_first("[optimizer]", "name = \"adamw\"")),
              HasSubstr("llm-foundry's optimizer.name is [optimizer] kind"));
}

std::string kind_said(const std::string& section, const std::string& kind) {
  const std::string text = said(kRecipe + section + "\nkind = \"" + kind + "\"\n");
  return text.substr(text.find(": ") + 2);
}

TEST(RecipeMistakes, AKindMayBeSomebodyElsesName) {
  EXPECT_EQ(kind_said("[[callbacks]]", "SpedMonitor"), "unknown callback; did you mean speed_monitor?");
  EXPECT_EQ(kind_said("[scheduler]", "torch.optim.lr_scheduler.LinearLR"),
            "unknown scheduler; did you mean linear_lr?");
  EXPECT_EQ(kind_said("[scheduler]", "cosine"), "unknown scheduler; did you mean cosine_annealing?");
  EXPECT_EQ(kind_said("[scheduler]", "LambdaLR"),
            "unknown scheduler; PyTorch's LambdaLR: not carried over: needs a Python function");
  EXPECT_THAT(message_of(kRecipe + std::string("[scheduler]\nkind = \"cosine_with_warmup\"\n")),
              HasSubstr("unknown scheduler; did you mean cosine_annealing_with_warmup?"));
  EXPECT_EQ(said(with_line("kind = \"sgd\"", "kind = \"RAdam\"")),
            "optimizer.kind = \"RAdam\": unknown optimizer; PyTorch's RAdam: not carried over: a plugin "
            "brings an optimizer");
  EXPECT_THAT(kind_said("[[loggers]]", "CometMLLogger"), HasSubstr("ot carried over: "));
  EXPECT_EQ(kind_said("[[loggers]]", "ProgressBarLogger"),
            "Not a section: [train] progress_bar shows or hides it.");
  EXPECT_THAT(kind_said("[[callbacks]]", "CheckpointSaver"), HasSubstr("[checkpoint]"));
  EXPECT_EQ(kind_said("[[callbacks]]", "tensorboard"),
            "unknown callback; tensorboard is one of the loggers: [[loggers]] kind = \"tensorboard\"");
  EXPECT_EQ(kind_said("[[algorithms]]", "MixUpp"), "unknown algorithm; did you mean mixup?");
}

TEST(RecipeMistakes, TextThatIsNotTomlIsGuessed) {
  const auto guess = [](const std::string& line) {
    const std::string text = said(with_line("lr = 0.1", line));
    return text.substr(text.rfind("; ") + 2);
  };
  EXPECT_EQ(guess("nesterov = True"), "did you mean true?");
  EXPECT_EQ(guess("nesterov = no # never"), "did you mean false?");
  EXPECT_EQ(guess("group = train"), "texts stand in quotes: \"train\"");
  EXPECT_EQ(guess("max_duration = 20ep"), "texts stand in quotes: \"20ep\"");
  EXPECT_EQ(guess("path = data/x.h5"), "texts stand in quotes: \"data/x.h5\"");
  EXPECT_EQ(guess("lr ="), "there is no value behind the =");
  EXPECT_EQ(guess("lr = None"), "to give no value, leave the key out");
  EXPECT_EQ(guess("lr: 0.1"), "expected key = value, not key: value");
  EXPECT_EQ(said(with_line("lr = 0.1", "kind = \"sgd\"")).find("quotes"), std::string::npos);
}

TEST(RecipeMistakes, AllWrongOverridesAreReported) {
  EXPECT_EQ(message_of(kRecipe, {"seed", "model..x=3"}),
            R"(--set: seed: expected key=value, like train.max_duration=20ep
      | --set seed
      |       ^^^^

error: --set: model..x=3: there is no model..x to set
      | --set model..x=3
      |             ^

2 errors)");
}

TEST(RecipeMistakes, APathIsSaidAsItWasWritten) {
  const std::string recipe = with_line("kind = \"synthetic\"", "kind = \"hdf5\"\npath = \"../data/x.h5\"");
  const Setting path = resolve_recipe(parse_recipe(recipe, "/a/b/r.toml")).at("data").at("train").at("path");
  EXPECT_EQ(path.text(), "/a/data/x.h5");
  const auto failed = [&](const auto& error) -> std::string {
    try {
      path.fail(error);
    } catch (const UserError& user) {
      return user.headline();
    }
  };
  EXPECT_EQ(failed(UserError({"/a/data/x.h5"}, "no such file")),
            "/a/b/r.toml:6: data.train.path = \"../data/x.h5\": no such file");
  EXPECT_EQ(failed(OperatingError({"/a/data/y.h5"}, "no such file")),
            "/a/b/r.toml:6: data.train.path = \"../data/x.h5\": /a/data/y.h5: no such file");
}

TEST(ForeignNames, StandForPlacesThatExist) {
  for (const ForeignName& one : foreign_names()) {
    if (one.target.empty())
      EXPECT_THAT(one.note, testing::AnyOf(HasSubstr("not carried over: "), HasSubstr("not yet: ")))
          << one.name;
    if (one.origin != "Lightning's" || one.target.empty()) continue;
    EXPECT_EQ(one.target[0], '[') << one.name;
  }
}

}  // namespace
}  // namespace tutti
