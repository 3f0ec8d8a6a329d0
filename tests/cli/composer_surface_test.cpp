#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/catalog_text.h"
#include "job/names/foreign_names.h"
#include "job/recipe_catalogs.h"
#include "recipe/key_check.h"
#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "training/engine/event.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

using testing::AllOf;
using testing::AnyOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;
using testing::UnorderedElementsAre;

const std::string kSource = TUTTI_SOURCE_DIR;
const std::string kNoTest = "-";

// A line of tests/composer_surface.txt.
struct Listed {
  std::string name, weight, test;
};

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == std::string::npos ? "" : text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

const std::vector<Listed>& surface() {
  static const std::vector<Listed> lines = [] {
    std::vector<Listed> found;
    std::ifstream file(kSource + "/tests/composer_surface.txt");
    for (std::string line; std::getline(file, line);) {
      if (line.empty() || line[0] == '#') continue;
      std::istringstream in(line);
      std::string name, weight, test;
      std::getline(std::getline(std::getline(in, name, '|'), weight, '|'), test);
      found.push_back({trimmed(name), trimmed(weight), trimmed(test)});
    }
    return found;
  }();
  return lines;
}

const std::set<std::string>& listed_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> found;
    for (const auto& one : surface()) found.insert(one.name);
    return found;
  }();
  return names;
}

std::string explained(const std::string& name) {
  return explain_text(all_catalogs(), composer_names(), name);
}

// "EMA" is not carried over where the line below its name says so.
bool is_refused(const std::string& explanation) {
  std::istringstream in(explanation);
  std::string heading, line;
  std::getline(std::getline(in, heading), line);
  return line.find("ot carried over: ") != std::string::npos || line.find("not yet: ") != std::string::npos;
}

// The sources of all tests, each run of blanks and line breaks a single blank.
const std::string& sources_of_tests() {
  static const std::string text = [] {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(kSource + "/tests")) {
      if (entry.path().extension() != ".cpp") continue;
      std::ifstream file(entry.path());
      for (std::string word; file >> word;) all += word + ' ';
    }
    return all;
  }();
  return text;
}

bool is_a_test(const std::string& name) {
  if (name.starts_with("runs/")) return fs::exists(kSource + "/tests/" + name);
  const auto dot = name.find('.');
  if (dot == std::string::npos) return false;
  const std::string words = '(' + name.substr(0, dot) + ", " + name.substr(dot + 1) + ')';
  const std::vector<std::string> macros = {"TEST", "TEST_F", "TEST_P"};
  return std::ranges::any_of(macros, [&](const std::string& macro) {
    return sources_of_tests().find(' ' + macro + words) != std::string::npos;
  });
}

// "[model] kind", and tables of a key: "[[data.eval.metrics]]".
bool is_kind_or_tables(const std::string& target) {
  return std::ranges::any_of(all_catalogs(), [&](const Catalog& catalog) {
    if (target == '[' + catalog.section + "] kind") return !catalog.entries.empty();
    return std::ranges::any_of(catalog.keys, [&](const Key& key) {
      return key.type == KeyType::kTables && target == "[[" + catalog.section + '.' + key.name + "]]";
    });
  });
}

// The kind of a target, by its first words.
bool is_there(const std::string& target) {
  const auto after = [&](const std::string& words) {
    return target.starts_with(words) ? target.substr(words.size()) : "";
  };
  if (const auto event = after("the event "); !event.empty()) return name(event_named(event)) == event;
  if (const auto unit = after("the time unit "); !unit.empty()) return time_unit("1" + unit) == unit;
  if (const auto command = after("tutti "); !command.empty()) {
    std::ifstream header(kSource + "/cli/commands.h");
    const std::string text{std::istreambuf_iterator<char>(header), {}};
    return text.find("void add_" + command + "(") != std::string::npos;
  }
  if (target.ends_with(".h")) return fs::exists(kSource + '/' + target);
  return is_kind_or_tables(target) || !place_text(all_catalogs(), target).empty();
}

TEST(ComposerSurface, EveryNameIsExplained) {
  const char* section = R"((^|is )\[\[?[a-z.]+\]\]?)";
  const char* other =
      "(^section |^metric |^logger |^dataset |^the top level|is the event |is the time unit |is tutti |is "
      "metric |"
      "is seed|is [a-z_/]+\\.h)";
  for (const auto& one : surface()) {
    SCOPED_TRACE(one.name);
    std::string text;
    ASSERT_NO_THROW(text = explained(one.name));
    if (is_refused(text)) continue;
    EXPECT_THAT(text, AnyOf(ContainsRegex(section), ContainsRegex(other)));
  }
}

TEST(ComposerSurface, AKeyIsExplainedWithItsDefault) {
  for (const auto& one : composer_names()) {
    if (one.target.empty() || one.target.find(" = ") != std::string::npos || one.target[0] != '[') continue;
    EXPECT_THAT(explained(one.name), HasSubstr(" = ")) << one.name;
  }
  EXPECT_THAT(explained("dist_timeout"), HasSubstr("hang_timeout = \"60sec\""));
  EXPECT_THAT(explained("num_checkpoints_to_keep"), HasSubstr("[checkpoint]\nkeep = -1"));
}

TEST(ComposerSurface, FeaturesCarriedOverNameTheirTest) {
  for (const auto& one : surface()) {
    SCOPED_TRACE(one.name);
    EXPECT_THAT(one.weight, AnyOf("M", "S", "N"));
    if (is_refused(explained(one.name)))
      EXPECT_EQ(one.test, kNoTest);
    else
      EXPECT_TRUE(is_a_test(one.test)) << "there is no test " << one.test;
  }
}

TEST(ComposerSurface, EveryNameStandsOnceInTheList) {
  EXPECT_EQ(listed_names().size(), surface().size());
  EXPECT_GT(surface().size(), 300u);
  for (const auto& one : composer_names()) EXPECT_EQ(listed_names().count(one.name), 1u) << one.name;
}

TEST(ComposerSurface, EveryEventIsInTheList) {
  for (std::size_t i = 0; i < kEvents; ++i) {
    std::string event = name(static_cast<Event>(i));
    for (char& c : event) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    EXPECT_EQ(listed_names().count(event), 1u) << event;
  }
}

// Under its own name or Composer's.
bool is_listed(const Catalog& catalog, const Entry& entry) {
  const std::string section = '[' + catalog.section + ']';
  const std::string target =
      (catalog.repeated ? '[' + section + ']' : section) + " kind = \"" + entry.name + '"';
  return listed_names().contains(entry.name) ||
         std::ranges::any_of(composer_names(), [&](const ForeignName& one) {
           return one.target == target && listed_names().contains(one.name);
         });
}

TEST(ComposerSurface, EveryKindThatIsComposersIsInTheList) {
  const std::set<std::string> nouns = {"callback", "logger", "scheduler", "metric", "optimizer"};
  const std::set<std::string> of_others = {"plugin",
                                           "command",
                                           "nadam",
                                           "adagrad",
                                           "rmsprop",
                                           "adafactor",
                                           "lion",
                                           "lamb",
                                           "muon",
                                           "decoupled_lionw",
                                           "warmup_stable_decay",
                                           "ChoiceAccuracy",
                                           "ChoiceAccuracyNorm",
                                           "ExactMatch",
                                           "BLEU",
                                           "CHRF"};
  const std::set<std::string> points_elsewhere = {"progress_bar", "checkpoint_saver", "load_checkpoint"};
  int kinds = 0;
  for (const auto& catalog : all_catalogs())
    for (const auto& entry : catalog.entries)
      if (nouns.contains(catalog.noun) && !of_others.contains(entry.name) &&
          !points_elsewhere.contains(entry.name)) {
        EXPECT_TRUE(is_listed(catalog, entry)) << catalog.noun << ' ' << entry.name;
        ++kinds;
      }
  EXPECT_GT(kinds, 60);
}

// The catalog and kind of "[[callbacks]] kind = "speed_monitor"" and "metric BinaryF1Score".
std::pair<const Catalog*, std::string> kind_of(std::span<const Catalog> catalogs, const std::string& target) {
  const auto first = target.find('"');
  for (const Catalog& catalog : catalogs) {
    if (first != std::string::npos && target.find('[' + catalog.section + ']') < first)
      return {&catalog, target.substr(first + 1, target.size() - first - 2)};
    if (catalog.noun == "metric" && target.starts_with("metric "))
      return {&catalog, target.substr(std::string("metric ").size())};
  }
  return {};
}

TEST(ComposerNames, OfClassesAreKindsInRecipes) {
  const std::set<std::string> nouns = {"algorithm", "callback", "logger", "scheduler", "metric", "optimizer"};
  const auto catalogs = all_catalogs();
  int classes = 0;
  for (const auto& one : foreign_names()) {
    const auto [catalog, kind] = kind_of(catalogs, one.target);
    const bool is_class =
        std::isupper(static_cast<unsigned char>(one.name[0])) && one.name.find('.') == one.name.npos;
    if (!catalog || !nouns.contains(catalog->noun) || !is_class || one.name == "SystemProfiler") continue;
    const Entry* entry = catalog->find_entry(one.name);
    EXPECT_TRUE(entry && entry->name == kind) << one.name << " in [" << catalog->section << ']';
    ++classes;
  }
  EXPECT_GT(classes, 80);
}

TEST(ComposerNames, AKindHasNoOthersSpelling) {
  for (const Catalog& catalog : all_catalogs())
    for (const Entry& one : catalog.entries)
      for (const Entry& other : catalog.entries)
        EXPECT_TRUE(&one == &other ||
                    !(same_name(one.name, other.name) || same_name(one.name + catalog.noun, other.name)))
            << one.name << " and " << other.name;
}

TEST(ForeignNames, AreNamesThatExist) {
  for (const ForeignName& foreign : foreign_names()) {
    if (foreign.target.empty())
      EXPECT_THAT(foreign.note, AnyOf(StartsWith("not carried over: "), StartsWith("not yet: ")))
          << foreign.name;
    else
      EXPECT_TRUE(is_there(foreign.target)) << foreign.name << " is " << foreign.target;
  }
  EXPECT_GT(foreign_names().size(), 600u);
}

TEST(ForeignNames, AreNamedOnceByAProgram) {
  std::set<std::pair<std::string, std::string>> names;
  for (const ForeignName& foreign : foreign_names())
    EXPECT_TRUE(names.emplace(foreign.origin, foreign.name).second) << foreign.origin << ' ' << foreign.name;
}

TEST(ForeignNames, AreOfTheseOrigins) {
  std::set<std::string> origins;
  for (const ForeignName& foreign : foreign_names()) origins.insert(foreign.origin);
  EXPECT_THAT(origins,
              UnorderedElementsAre("Composer's", "Lightning's", "PyTorch's", "Streaming's", "diffusers'",
                                   "llm-foundry's", "segmentation_models_pytorch's", "transformers'"));
}

TEST(ComposerNames, AreExplainedByTheCatalogsOwnText) {
  const std::string monitor = explained("SpeedMonitor");
  EXPECT_THAT(monitor,
              StartsWith("Composer's SpeedMonitor is [[callbacks]] kind = \"speed_monitor\"\n# Logs"));
  EXPECT_THAT(monitor, HasSubstr("\nwindow_size = 100 "));
  EXPECT_THAT(explained("LinearLR"), StartsWith("PyTorch's LinearLR is [scheduler] kind = \"linear_lr\"\n"));
  EXPECT_THAT(explained("Trainer.predict"), StartsWith("Composer's Trainer.predict is tutti predict: "));
  EXPECT_THAT(explained("peft_config"),
              StartsWith("Composer's peft_config is [[algorithms]] kind = \"lora\""));
  EXPECT_THAT(explained("MAP"), StartsWith("Composer's MAP\nnot yet: "));
  EXPECT_THAT(explained("CometMLLogger"), HasSubstr("\n# Not carried over: "));
}

TEST(ComposerNames, AreKnownInAnyCaseAndWithoutTheirClass) {
  EXPECT_EQ(explained("speedmonitor"), explained("SpeedMonitor"));
  EXPECT_EQ(explained("before_forward"), explained("BEFORE_FORWARD"));
  EXPECT_EQ(explained("predict"), explained("Trainer.predict"));
}

TEST(ComposerNames, StandBesideWhatTheCatalogsSay) {
  EXPECT_THAT(explained("schedulers"),
              AllOf(StartsWith("[scheduler] kind = \"sequential_lr\"\nschedulers = "),
                    HasSubstr("\nComposer's schedulers is [scheduler]: ")));
}

TEST(ComposerNames, AreSuggested) {
  try {
    explained("SpedMonitor");
    ADD_FAILURE() << "it was explained";
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "nothing is called SpedMonitor; did you mean SpeedMonitor?");
  }
}

}  // namespace
}  // namespace tutti
