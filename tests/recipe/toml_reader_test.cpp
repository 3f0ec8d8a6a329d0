#include "recipe/toml_reader.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "job/recipe_catalogs.h"
#include "models/zoo/catalog.h"
#include "recipe/key_check.h"
#include "recipe/resolve.h"

namespace tutti {
namespace {

using Overrides = std::vector<std::string>;

constexpr const char* kDigits = R"(run_name = "digits"
seed = 17

[model]
kind = "mlp"
hidden = [128, 64]

[data.train]
kind = "hdf5"
path = "data/digits.h5"
batch_size = 96
shuffle = true

[optimizer]
kind = "sgd"
lr = 0.1
momentum = 0.9

[train]
max_duration = "20ep"
)";

// Line `line` of the recipe above in other words.
std::string with_line(int line, const std::string& text) {
  std::istringstream in(kDigits);
  std::string out;
  std::string row;
  for (int number = 1; std::getline(in, row); ++number) out += (number == line ? text : row) + '\n';
  return out;
}

std::string with_more(const std::string& text) { return kDigits + text; }

Setting resolved(const std::string& toml, const Overrides& overrides = {}) {
  return resolve_recipe(parse_recipe(toml, "/r/digits.toml", overrides));
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string error_of(const std::string& toml, const Overrides& overrides = {}) {
  try {
    resolve_recipe(parse_recipe(toml, "digits.toml", overrides));
  } catch (const UserError& error) {
    return first_line(error.what());
  }
  return "no error";
}

TEST(Recipe, AKeyThatIsNestedTooDeeplyIsRefused) {
  std::string deep = "a";
  for (int i = 0; i < 50'000; ++i) deep += i % 2 == 0 ? ".a" : " . \"a b\"";
  const std::string refused = "a key is nested too deeply";
  EXPECT_EQ(error_of("seed = 1\n[" + deep + "]\n"), "digits.toml:2: " + refused);
  EXPECT_EQ(error_of(deep + " = 1\n"), "digits.toml:1: " + refused);
  EXPECT_EQ(error_of(kDigits, {deep + "=1"}), "--set: " + refused);
  std::string words = "seed = 1\nprompt = \"\"\"";
  for (int i = 0; i < 100; ++i) words += "One two. ";
  EXPECT_EQ(parse_recipe(words + "\"\"\"\n", "digits.toml").at("seed").integer(), 1);
}

TEST(Recipe, BracketsWithoutAKeyAreRefused) {
  EXPECT_TRUE(error_of("[[[").starts_with("digits.toml:1: this is not TOML: ")) << error_of("[[[");
}

TEST(Recipe, KeepsTheLineOfEachKey) {
  const Setting recipe = parse_recipe(kDigits, "digits.toml");
  EXPECT_EQ(recipe.at("seed").position.text(), "digits.toml:2");
  EXPECT_EQ(recipe.at("model").position.text(), "digits.toml:4");
  EXPECT_EQ(recipe.at("model").at("hidden").array()[1].position.text(), "digits.toml:6");
  EXPECT_EQ(recipe.at("data").at("train").at("batch_size").position.text(), "digits.toml:11");
  EXPECT_EQ(recipe.at("data").at("train").at("batch_size").path, "data.train.batch_size");
}

TEST(Recipe, KeepsTheOrderWritten) {
  const Setting recipe = parse_recipe(kDigits, "digits.toml");
  std::string order;
  for (const auto& [name, member] : recipe.table()) order += name + ' ';
  EXPECT_EQ(order, "run_name seed model data optimizer train ");
}

TEST(Recipe, ResolvesWithDefaults) {
  const Setting recipe = resolved(kDigits);
  EXPECT_EQ(recipe.at("seed").integer(), 17);
  EXPECT_EQ(recipe.at("model").at("hidden").integers(), (std::vector<int64_t>{128, 64}));
  EXPECT_EQ(recipe.at("model").at("activation").text(), "relu");
  EXPECT_EQ(recipe.at("data").at("train").at("path").text(), "/r/data/digits.h5");
  EXPECT_FALSE(recipe.at("data").has("eval"));
  EXPECT_EQ(recipe.at("optimizer").at("dampening").number(), 0.0);
  EXPECT_EQ(recipe.at("scheduler").at("kind").text(), "constant");
  EXPECT_EQ(recipe.at("train").at("hang_timeout").text(), "60sec");
  EXPECT_EQ(recipe.at("device").at("kind").text(), "auto");
  EXPECT_EQ(recipe.at("collectives").at("bucket_mb").number(), 25.0);
  EXPECT_EQ(recipe.at("checkpoint").at("keep").integer(), -1);
}

TEST(Recipe, TakesComposersNames) {
  const Setting recipe =
      resolved(with_more("[checkpoint]\nsave_interval = \"5ba\"\nsave_num_checkpoints_to_keep = 2\n"
                         "load_path = \"old\"\n"));
  EXPECT_EQ(recipe.at("checkpoint").at("interval").text(), "5ba");
  EXPECT_EQ(recipe.at("checkpoint").at("keep").integer(), 2);
  EXPECT_EQ(recipe.at("checkpoint").at("resume").text(), "/r/old");
}

TEST(Recipe, OverridesAreTomlElseBareTexts) {
  const Setting recipe =
      resolved(kDigits, {"model.hidden=[32]", "optimizer.lr=1", "train.max_duration=3ep", "run_name=a=b",
                         "checkpoint.resume=auto", "model.activation=\"gelu\""});
  EXPECT_EQ(recipe.at("model").at("hidden").integers(), std::vector<int64_t>{32});
  EXPECT_EQ(recipe.at("optimizer").at("lr").number(), 1.0);
  EXPECT_EQ(recipe.at("train").at("max_duration").text(), "3ep");
  EXPECT_EQ(recipe.at("run_name").text(), "a=b");
  EXPECT_EQ(recipe.at("checkpoint").at("resume").text(), "auto");
  EXPECT_EQ(recipe.at("model").at("activation").text(), "gelu");
}

TEST(Recipe, TheLaterOverrideWins) {
  EXPECT_EQ(resolved(kDigits, {"seed=1", "seed=2"}).at("seed").integer(), 2);
}

TEST(Recipe, AnOverrideReachesIntoAListOfTables) {
  const Setting recipe = parse_recipe("[[a]]\nx = 1\n[[a]]\nx = 2\n", "r.toml", Overrides{"a.1.x=7"});
  EXPECT_EQ(recipe.at("a").array()[0].at("x").integer(), 1);
  EXPECT_EQ(recipe.at("a").array()[1].at("x").integer(), 7);
}

TEST(Recipe, AnOverrideThatReplacesABatchSizeLeavesOnlyItself) {
  const Setting train = resolved(kDigits, {"data.train.device_batch_size=8"}).at("data").at("train");
  EXPECT_FALSE(train.has("batch_size"));
  EXPECT_EQ(train.at("device_batch_size").integer(), 8);
}

TEST(Recipe, WrittenOutItReadsBackToTheSame) {
  const std::string text =
      write_recipe(resolved(with_more("[data.eval]\nkind = \"bytes\"\npath = \"a \\\"b\\\".txt\"\n"
                                      "[scheduler]\nkind = \"multistep\"\nmilestones = [1, \"9ba\"]\n")));
  const Setting again = resolve_recipe(parse_recipe(text, "/elsewhere/recipe.toml"));
  EXPECT_EQ(write_recipe(again), text);
  EXPECT_EQ(write_recipe(resolve_recipe(again)), text);
  EXPECT_EQ(again.at("data").at("eval").at("path").text(), "/r/a \"b\".txt");
  EXPECT_EQ(again.at("scheduler").at("milestones").texts(), (std::vector<std::string>{"1ep", "9ba"}));
}

TEST(Recipe, WritesSectionsUnderTheirHeadings) {
  const Setting recipe =
      parse_recipe("[a.e]\ny = 1\n[b]\nx = {y = 1}\nz = 2\n[[c]]\nk = 1\n[[c]]\n[b.d]\n", "r.toml");
  EXPECT_EQ(write_recipe(recipe),
            "[a.e]\ny = 1\n\n[b]\nz = 2\n\n[b.x]\ny = 1\n\n[b.d]\n\n[[c]]\nk = 1\n\n[[c]]\n");
}

struct BadInput {
  const char* name;
  std::string toml;
  std::string message;
  Overrides overrides = {};
};

void PrintTo(const BadInput& bad, std::ostream* out) { *out << bad.name; }

class RecipeRefuses : public testing::TestWithParam<BadInput> {};

TEST_P(RecipeRefuses, WithOneClearMessage) {
  EXPECT_EQ(error_of(GetParam().toml, GetParam().overrides), GetParam().message);
}

const BadInput kBadInputs[] = {
    {"UnknownKey", with_line(20, "max_durration = \"20ep\""),
     "digits.toml:20: train.max_durration = \"20ep\": unknown key; did you mean max_duration?"},
    {"UnknownTopLevelKey", with_line(2, "sead = 17"),
     "digits.toml:2: sead = 17: unknown key; did you mean seed?"},
    {"UnknownSection", with_line(14, "[optimiser]"),
     "digits.toml:14: [optimiser]: unknown section; did you mean optimizer?"},
    {"UnknownDataSection", with_line(8, "[data.test]"),
     "digits.toml:8: [data.test]: unknown section; there are data.train, data.eval"},
    {"UnknownModel", with_line(5, "kind = \"mlpp\""),
     "digits.toml:5: model.kind = \"mlpp\": unknown model; did you mean mlp?"},
    {"KeyOfAnotherKind", with_line(17, "betas = [0.9, 0.99]"),
     "digits.toml:17: optimizer.betas = [0.9, 0.99]: unknown key of optimizer sgd; it is a key of adam, "
     "adamw, decoupled_adamw, nadam, lion, decoupled_lionw or lamb"},
    {"NotATime", with_line(20, "max_duration = \"20xp\""),
     "digits.toml:20: train.max_duration = \"20xp\": expected a time in iter, ep, ba, sp, tok, "
     "sec"},
    {"TextForANumber", with_line(16, "lr = \"fast\""),
     "digits.toml:16: optimizer.lr = \"fast\": expected a number >= 0"},
    {"NegativeLearningRate", with_line(16, "lr = -0.1"),
     "digits.toml:16: optimizer.lr = -0.1: expected a number >= 0"},
    {"FractionOfABatch", with_line(11, "batch_size = 9.6"),
     "digits.toml:11: data.train.batch_size = 9.6: expected an integer in [1, 1e+09]"},
    {"EmptyBatch", with_line(11, "batch_size = 0"),
     "digits.toml:11: data.train.batch_size = 0: expected an integer in [1, 1e+09]"},
    {"NoBatchSize", with_line(11, ""),
     "digits.toml:8: [data.train]: batch_size is missing (or device_batch_size in its place)"},
    {"BothBatchSizes", with_line(12, "device_batch_size = 48"),
     "digits.toml:12: data.train.device_batch_size = 48: excludes data.train.batch_size (digits.toml:11); "
     "keep one of "
     "the two"},
    {"TextForABoolean", with_line(12, "shuffle = \"yes\""),
     "digits.toml:12: data.train.shuffle = \"yes\": expected true or false; did you mean true?"},
    {"TextInAListOfIntegers", with_line(6, "hidden = [128, \"64\"]"),
     "digits.toml:6: model.hidden.1 = \"64\": expected a list of integers in [1, 1e+09]; did you mean 64?"},
    {"NoPath", with_line(10, ""), "digits.toml:8: [data.train]: path is missing (the file: a path)"},
    {"NoKind", with_line(15, ""),
     "digits.toml:14: [optimizer]: kind is missing (one of sgd, decoupled_sgdw, adam, adamw, "
     "decoupled_adamw, nadam, adagrad, rmsprop, adafactor, lion, decoupled_lionw, lamb, muon, plugin)"},
    {"NoMaxDuration", with_line(20, ""),
     "digits.toml:19: [train]: max_duration is missing (how long to train: a time in iter, ep, ba, sp, tok, "
     "sec)"},
    {"UnknownDevice", with_more("[device]\nkind = \"fridge\"\n"),
     "digits.toml:22: device.kind = \"fridge\": unknown device; expected one of auto, cpu, gpu, cuda, test"},
    {"EmptyFile", "",
     "digits.toml: [model]: the section is missing; it needs kind (one of " +
         joined(model_catalog().kinds()) + ")"},
    {"BothNames", with_more("[checkpoint]\nsave_interval = 1\ninterval = 2\n"),
     "digits.toml:22: checkpoint.save_interval = 1: given as interval too (digits.toml:23); keep one of the "
     "two"},
    {"UnknownChoice", with_more("[collectives]\nbackend = \"mpii\"\n"),
     "digits.toml:22: collectives.backend = \"mpii\": expected one of auto, local, mpi, nccl; did you mean "
     "\"mpi\"?"},
    {"SecondsAsEpochs", with_more("hang_timeout = 60\n"),
     "digits.toml:21: train.hang_timeout = 60: expected a time in seconds like 60sec or 1m30s in [1, 1e+06]; "
     "did "
     "you mean \"60sec\"?"},
    {"SectionAsValue", "model = \"mlp\"\n",
     "digits.toml:1: model = \"mlp\": expected a table, [model] with its keys "
     "below"},
    {"ListOfSections", with_more("[[checkpoint]]\n"),
     "digits.toml:21: checkpoint = [{}]: expected a table, [checkpoint] with its keys below"},
    {"Date", with_line(2, "seed = 2024-01-01"),
     "digits.toml:2: seed: dates and times of day have no meaning in a recipe"},
    {"OverrideOfAnUnknownKey",
     kDigits,
     "--set: train.epochs = 3: unknown key; PyTorch's epochs is [train] max_duration: as in max_duration = "
     "\"20ep\"; steps are \"500ba\"",
     {"train.epochs=3"}},
    {"OverrideOfAnotherType",
     kDigits,
     "--set: optimizer.lr = \"fast\": expected a number >= 0",
     {"optimizer.lr=fast"}},
    {"OverrideWithoutAValue",
     kDigits,
     "--set: seed: expected key=value, like train.max_duration=20ep",
     {"seed"}},
    {"OverrideWithoutAKey", kDigits, "--set: =3: expected key=value, like train.max_duration=20ep", {"=3"}},
    {"OverrideBelowAValue", kDigits, "--set: seed.x=3: there is no seed.x to set", {"seed.x=3"}},
    {"OverrideWithAHole", kDigits, "--set: model..x=3: there is no model..x to set", {"model..x=3"}},
};

INSTANTIATE_TEST_SUITE_P(Bad, RecipeRefuses, testing::ValuesIn(kBadInputs),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(Recipe, NoTomlIsNamedWithItsLine) {
  const std::string message = error_of(with_line(5, "kind = \"mlp"));
  EXPECT_EQ(message.substr(0, message.find("Error")), "digits.toml:5: this is not TOML: ");
  EXPECT_EQ(error_of(with_line(2, "run_name = \"again\"")).substr(0, 15), "digits.toml:2: ");
}

TEST(Recipe, AMissingFileSuggestsTheNearestBeside) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "tutti_recipe_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "digits.toml") << kDigits;
  const auto read = [](const std::string& path) -> std::string {
    try {
      read_recipe(path);
    } catch (const UserError& error) {
      return error.what();
    }
    return "no error";
  };
  const std::string base = folder.string();
  EXPECT_EQ(
      read(base + "/digts.toml"),
      base + "/digts.toml: cannot read the recipe: No such file or directory; did you mean digits.toml?");
  EXPECT_EQ(read(base), base + ": this is a folder; expected a recipe, a TOML file");
  EXPECT_EQ(read(base + "/digits.toml"), "no error");
  std::filesystem::remove_all(folder);
}

TEST(Catalogs, EveryDefaultIsAValueThatItsKeyAccepts) {
  for (const auto& catalog : recipe_catalogs()) {
    std::vector<const Entry*> entries = {nullptr};
    for (const auto& entry : catalog.entries) entries.push_back(&entry);
    for (const Entry* entry : entries) {
      for (const auto& key : catalog.keys_of(entry)) {
        EXPECT_FALSE(key.doc.empty()) << catalog.section << '.' << key.name;
        if (key.required()) continue;
        EXPECT_NO_THROW(fallback_value(key, key.name, {})) << catalog.section << '.' << key.name;
      }
    }
  }
}

TEST(Catalogs, NoNameIsTakenTwice) {
  for (const auto& catalog : recipe_catalogs()) {
    for (const auto& entry : catalog.entries) {
      std::set<std::string> names = {"kind"};
      for (const auto& key : catalog.keys_of(&entry)) {
        EXPECT_TRUE(names.insert(key.name).second) << catalog.section << ' ' << entry.name << ' ' << key.name;
        for (const auto& alias : key.aliases) {
          EXPECT_TRUE(names.insert(alias).second) << catalog.section << ' ' << entry.name << ' ' << alias;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tutti
