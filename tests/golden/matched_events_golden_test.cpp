#include <gtest/gtest.h>

#include <regex>

#include "algorithms/catalog.h"
#include "algorithms/factory.h"
#include "recipe/resolve.h"
#include "recipe/toml_reader.h"
#include "tests/golden/composer_names.h"
#include "tests/golden/golden_json.h"
#include "tests/golden/not_built.h"
#include "training/state.h"

namespace tutti {
namespace {

using nlohmann::json;

constexpr const char* kMatches = "algorithm_match_events";

json golden_matches() {
  const json all = golden_json("events.json");
  return all.is_null() ? json::object() : all.value(kMatches, json::object());
}

// "CutMix(interpolate_loss)", "ColOut(batch=False)": Composer's class, and arguments that are not the
// default; a name alone is true.
struct Matched {
  explicit Matched(const std::string& text) {
    static const std::regex call(R"((\w+)(?:\((.*)\))?)"), argument(R"((\w+)(?: *= *([^, ]+))?)");
    std::smatch parts;
    if (!std::regex_match(text, parts, call)) throw std::logic_error("no test knows " + text);
    name = parts[1];
    const std::string given = parts[2];
    for (std::sregex_iterator one(given.begin(), given.end(), argument), end; one != end; ++one)
      options += (*one)[1].str() + " = " + toml((*one)[2]) + "\n";
  }

  static std::string toml(const std::string& python) {
    if (python.empty() || python == "True") return "true";
    if (python == "False") return "false";
    const bool number = python.find_first_not_of("0123456789.e-") == std::string::npos;
    return number || python[0] == '\'' || python[0] == '"' ? python : "'" + python + "'";
  }

  std::string name, options;
};

std::shared_ptr<Algorithm> algorithm_of(const Matched& matched) {
  const Catalog catalog = algorithm_catalog();
  const Entry* entry = catalog.find_entry(recipe_kind("[[algorithms]]", matched.name));
  const std::string text =
      "[[algorithms]]\nkind = '" + entry->name + "'\n" + entry->origin.example + "\n" + matched.options;
  const Setting recipe = resolve(parse_recipe(text, "matched.toml"), std::span(&catalog, 1));
  return make_algorithm(recipe.at("algorithms").array()[0]);
}

class GoldenMatches : public testing::TestWithParam<std::string> {};

// A new State of Composer's run: the first step.
TEST_P(GoldenMatches, AreAtComposersEvents) {
  const Matched matched(GetParam());
  if (is_not_built("algorithm " + matched.name)) GTEST_SKIP() << "its algorithms are not built yet";
  State state;
  state.composer = true;
  state.max_duration = Time(10, TimeUnit::kEpoch);
  const auto algorithm = algorithm_of(matched);
  json events = json::array();
  for (std::size_t i = 0; i < kEvents; ++i)
    if (algorithm->match(static_cast<Event>(i), state)) events.push_back(name(static_cast<Event>(i)));
  EXPECT_EQ(events, golden_matches().at(GetParam()));
}

std::vector<std::string> matched_names() {
  const json matches = golden_matches();
  std::vector<std::string> names;
  for (const auto& [name, events] : matches.items()) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All, GoldenMatches, testing::ValuesIn(matched_names()), [](const auto& info) {
  return std::regex_replace(info.param, std::regex(R"(\W+)"), "_");
});
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(GoldenMatches);

}  // namespace
}  // namespace tutti
