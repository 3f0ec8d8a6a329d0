#include "cli/catalog_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "algorithms/catalog.h"
#include "cli/recipe_markdown.h"
#include "job/recipe_catalogs.h"
#include "runtime/error.h"

namespace tutti {
namespace {

using enum KeyType;
using testing::HasSubstr;

const Catalog kGaits = {
    .section = "walk",
    .noun = "gait",
    .doc = "How to move.",
    .keys = {Key{"speed", kNumber, "1.5", "metres a second"}.also_named({"pace"}).at_least(0)},
    .entries = {
        {"trot", "Two beats.", {{"legs", kInteger, "4", "how many"}}},
        {"gallop", "Four beats.", {{"legs", kInteger, "4", "how many"}, {"goal", kPath, "", "where to"}}}}};
const Catalog kRest = {.section = "rest.long",
                       .noun = "",
                       .doc = "How to stop.",
                       .keys = {{"speed", kNumber, "none", "of the breath"}}};
const std::vector<Catalog> kCatalogs = {kGaits, kRest};

std::string error_of(std::string (*text)(std::span<const Catalog>, const std::string&),
                     const std::string& name) {
  try {
    text(kCatalogs, name);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

TEST(List, ShowsEveryKindOfANoun) {
  EXPECT_EQ(list_text(kCatalogs, "gaits"), "trot    Two beats.\ngallop  Four beats.\n");
  EXPECT_EQ(list_text(kCatalogs, "gait"), list_text(kCatalogs, "gaits"));
}

TEST(List, ShowsEveryNounWithItsKinds) { EXPECT_EQ(list_text(kCatalogs, ""), "gaits  trot, gallop\n"); }

TEST(List, SaysWhatRecipesRefuse) {
  Catalog gaits = kGaits;
  gaits.entries.push_back(refused_entry("flight", "Not carried over: no wings."));
  EXPECT_EQ(list_text(std::span(&gaits, 1), ""), "gaits  trot, gallop; refused: flight\n");
  EXPECT_THAT(list_text(std::span(&gaits, 1), "gaits"), HasSubstr("flight  Not carried over: no wings.\n"));
  EXPECT_THAT(explain_text(std::span(&gaits, 1), "walk"), HasSubstr("# one of trot, gallop\n"));
}

TEST(List, SuggestsTheNearestNoun) {
  EXPECT_EQ(error_of(list_text, "gates"), "there are no gates to list; did you mean gaits?");
  EXPECT_EQ(error_of(list_text, "colours"), "there are no colours to list; there are gaits");
}

TEST(Explain, AKindShowsAllItsKeysAsARecipeHasThem) {
  EXPECT_EQ(explain_text(kCatalogs, "gallop"),
            "gait gallop\n"
            "# Four beats.\n"
            "[walk]\n"
            "kind = \"gallop\"\n"
            "speed = 1.5        # metres a second: a number >= 0; also named pace\n"
            "legs = 4           # how many: an integer\n"
            "goal = (required)  # where to: a path\n");
}

TEST(Explain, ASectionShowsItsKinds) {
  const std::string walk =
      "section walk\n# How to move.\n[walk]\nkind = (required)  # one of trot, gallop\n"
      "speed = 1.5  # metres a second: a number >= 0; also named pace\n";
  EXPECT_EQ(explain_text(kCatalogs, "walk"), walk);
  EXPECT_EQ(explain_text(kCatalogs, "walk.kind"), walk);
  EXPECT_EQ(explain_text(kCatalogs, "rest"), explain_text(kCatalogs, "rest.long"));
}

TEST(Explain, AnEntryWithoutSectionAndKeysShowsItsMeaning) {
  const Catalog metrics = {
      .section = "", .noun = "metric", .doc = "", .entries = {{"Grace", "How it looks."}}};
  EXPECT_EQ(explain_text(std::vector<Catalog>{metrics}, "Grace"), "metric Grace\n# How it looks.\n");
}

TEST(Explain, AnEntryWithoutSectionShowsItsKeys) {
  const Catalog metrics = {.section = "",
                           .noun = "metric",
                           .doc = "",
                           .entries = {{"Grace", "How it looks.", {{"angles", kInteger, "3", "of view"}}}}};
  const std::vector<Catalog> catalogs = {metrics};
  EXPECT_EQ(explain_text(catalogs, "Grace"),
            "metric Grace\n# How it looks.\nangles = 3  # of view: an integer\n");
  EXPECT_EQ(explain_text(catalogs, "angles"), "metric Grace\nangles = 3  # of view: an integer\n");
}

TEST(Explain, AKeyIsReportedOnceForAllItsPlaces) {
  EXPECT_EQ(explain_text(kCatalogs, "legs"),
            "[walk] kind = \"trot\", [walk] kind = \"gallop\"\nlegs = 4  # how many: an integer\n");
  EXPECT_EQ(explain_text(kCatalogs, "speed"),
            "[walk]\nspeed = 1.5  # metres a second: a number >= 0; also named pace\n\n"
            "[rest.long]\nspeed = (none)  # of the breath: a number\n");
}

TEST(Explain, AKeyNotCarriedOverSaysWhy) {
  const Catalog catalog = {.section = "walk",
                           .noun = "",
                           .doc = "",
                           .keys = {Key{"wings", kInteger, "none", ""}.not_carried_over("feet do")}};
  EXPECT_EQ(explain_text(std::vector<Catalog>{catalog}, "wings"),
            "[walk]\nwings  # not carried over: feet do\n");
  EXPECT_NE(
      recipe_markdown(std::vector<Catalog>{catalog}).find("| `wings` | | | not carried over: feet do |"),
      std::string::npos);
}

// Composer's own names of them; the answer is one line a key.
TEST(Explain, KnowsEveryCheckpointOptionOfComposer) {
  for (const char* name :
       {"save_folder", "save_filename", "save_latest_filename", "save_overwrite", "save_interval",
        "save_weights_only", "save_ignore_keys", "save_num_checkpoints_to_keep", "save_metrics", "load_path",
        "load_object_store", "load_weights_only", "load_strict_model_weights", "load_ignore_keys",
        "load_exclude_algorithms", "load_progress_bar", "autoresume", "deepspeed", "deterministic_mode"})
    EXPECT_NE(explain_text(recipe_catalogs(), name).find("# "), std::string::npos) << name;
}

TEST(Explain, ADottedKeyIsThatOfItsSection) {
  EXPECT_EQ(explain_text(kCatalogs, "rest.long.speed"),
            "[rest.long]\nspeed = (none)  # of the breath: a number\n");
  EXPECT_EQ(explain_text(kCatalogs, "walk.pace"), explain_text(kCatalogs, "walk.speed"));
}

TEST(Explain, SuggestsTheNearestName) {
  EXPECT_EQ(error_of(explain_text, "galop"), "nothing is called galop; did you mean gallop?");
  EXPECT_EQ(error_of(explain_text, "zzzzzzzz"),
            "nothing is called zzzzzzzz; `tutti list` shows what there is");
}

TEST(RecipeMarkdown, IsWhatTheDocsSay) {
  std::ifstream file(TUTTI_SOURCE_DIR "/docs/recipe.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), recipe_markdown(recipe_catalogs()))
      << "write it anew: tutti explain --markdown > docs/recipe.md";
}

TEST(AlgorithmsMarkdown, IsWhatTheDocsSay) {
  std::ifstream file(TUTTI_SOURCE_DIR "/docs/algorithms.md");
  std::ostringstream text;
  text << file.rdbuf();
  const std::string generated = text.str().substr(0, text.str().find("\n## Measured\n"));
  EXPECT_EQ(generated, algorithms_markdown(algorithm_catalog()))
      << "write it anew, before its last part, which is measured: tutti explain algorithms --markdown";
}

TEST(AlgorithmsMarkdown, EveryAlgorithmSaysWhatItSuitsAndDoes) {
  for (const Entry& entry : algorithm_catalog().entries) {
    if (entry.name == kPluginKind) continue;
    const Origin& origin = entry.origin;
    for (const std::string* said : {&origin.header, &origin.models, &origin.effect})
      EXPECT_FALSE(said->empty()) << entry.name;
    EXPECT_EQ(origin.functions.empty(), origin.call.empty()) << entry.name;
    EXPECT_TRUE(std::filesystem::exists(TUTTI_SOURCE_DIR "/" + std::string(origin.header))) << entry.name;
  }
}

TEST(RecipeMarkdown, SaysTheSameKindsOnce) {
  Catalog again = kGaits;
  again.section = "run";
  const std::string text = recipe_markdown(std::vector<Catalog>{kGaits, again});
  EXPECT_EQ(text.find("kind = \"trot\""), text.rfind("kind = \"trot\""));
  EXPECT_NE(text.find("## `[run]`\nHow to move. `kind` is required.\n"), std::string::npos);
  EXPECT_NE(text.find("The kinds and their keys are those of `[walk]`."), std::string::npos);
}

}  // namespace
}  // namespace tutti
