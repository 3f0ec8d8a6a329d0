#include "recipe/recipe_space.h"

#include <algorithm>
#include <initializer_list>
#include <utility>
#include <vector>

#include "recipe/overlay.h"
#include "runtime/nearest_name.h"
#include "runtime/random.h"

namespace tutti {
namespace {

constexpr const char* kDraw = "draw";
constexpr const char* kRanks = "ranks";
constexpr int64_t kMostWeight = 1000;
constexpr int kMostRanks = 1024;

std::set<std::string> texts_of(const Setting& table, const char* key) {
  const Setting* list = table.find(key);
  if (!list) return {};
  const std::vector<std::string> texts = list->texts();
  return {texts.begin(), texts.end()};
}

// The tags that a draw or an option asks for. `given`: those of earlier draws.
std::set<std::string> with_of(const Setting& table, const std::set<std::string>& given) {
  if (!table.find("with")) return {};
  for (const Setting& tag : table.at("with").array()) {
    if (given.contains(tag.text())) continue;
    const std::string near = nearest_name(tag.text(), {given.begin(), given.end()});
    tag.fail("no option of an earlier draw has this tag" +
             (near.empty() ? "" : "; did you mean " + near + "?"));
  }
  return texts_of(table, "with");
}

void erase_members(Setting& table, std::initializer_list<const char*> keys) {
  std::erase_if(table.table(),
                [&](const auto& member) { return std::ranges::count(keys, member.first) > 0; });
}

bool has_tables(const Setting& setting) {
  return setting.is_array() && !setting.array().empty() && setting.array().front().is_table();
}

// A table that has the value behind a dotted key.
Setting nested(const std::string& key, const Setting& value) {
  Setting table(Setting::Table{}, "", value.position);
  const std::size_t dot = key.find('.');
  table.table().emplace_back(key.substr(0, dot),
                             dot == key.npos ? value : nested(key.substr(dot + 1), value));
  return table;
}

void add_keys(Setting& recipe, Setting keys) {
  for (auto& [name, member] : keys.table()) {
    Setting* own = recipe.find(name);
    if (!own || !has_tables(*own) || !has_tables(member)) continue;
    auto& added = std::get<Setting::Array>(member.value);
    added.insert(added.begin(), own->array().begin(), own->array().end());
  }
  place(keys, "");
  overlay(recipe, keys);
}

}  // namespace

bool RecipeSpace::is_space(const Setting& written) { return written.is_table() && written.find(kDraw); }

RecipeSpace::RecipeSpace(Setting written) : base_(std::move(written)) {
  std::set<std::string> given;  // tags of earlier draws
  for (const Setting& written_draw : base_.at(kDraw).array()) {
    draws_.push_back(read_draw(written_draw, given));
    for (const Option& option : draws_.back().options) given.insert(option.tags.begin(), option.tags.end());
  }
  erase_members(base_, {kDraw});
  most_ranks(/*ranks=*/1);  // refuses numbers of ranks that cannot be
}

RecipeSpace::Option RecipeSpace::read_option(const Setting& written, const std::set<std::string>& given) {
  Option option{written, texts_of(written, "tags"), with_of(written, given), 1};
  if (const Setting* weight = written.find("weight")) {
    option.weight = weight->integer();
    if (option.weight < 1 || option.weight > kMostWeight)
      weight->fail("expected a weight from 1 to " + std::to_string(kMostWeight));
  }
  erase_members(option.keys, {"tags", "with", "weight"});
  return option;
}

RecipeSpace::Draw RecipeSpace::read_draw(const Setting& written, const std::set<std::string>& given) {
  for (const auto& [name, value] : written.table())
    if (constexpr const char* kKnown[] = {"key", "values", "options", "with", "least", "probability", "most"};
        std::ranges::find(kKnown, name) == std::end(kKnown))
      value.fail_key("a draw has key and values, or options; and probability, least, most, with");
  Draw draw;
  if (const Setting* probability = written.find("probability")) draw.probability = probability->number();
  if (const Setting* most = written.find("most")) draw.most = most->integer();
  draw.least = written.find("least") ? written.at("least").integer() : std::min<int64_t>(1, draw.most);
  draw.with = with_of(written, given);
  if (const Setting* key = written.find("key")) {
    for (const Setting& value : written.at("values").array())
      draw.options.push_back({nested(key->text(), value), {}, {}, 1});
  } else {
    for (const Setting& option : written.at("options").array())
      draw.options.push_back(read_option(option, given));
  }
  if (draw.options.empty()) written.fail("there is nothing to draw from");
  return draw;
}

int RecipeSpace::most_ranks(int ranks) const {
  const auto most_of = [](int most, const Setting& keys) {
    const Setting* own = keys.find(kRanks);
    if (!own) return most;
    if (own->integer() < 1 || own->integer() > kMostRanks)
      own->fail("expected 1 to " + std::to_string(kMostRanks) + " ranks");
    return std::max(most, static_cast<int>(own->integer()));
  };
  int most = most_of(base_.find(kRanks) ? 1 : ranks, base_);
  for (const Draw& draw : draws_)
    for (const Option& option : draw.options) most = most_of(most, option.keys);
  return most;
}

DrawnRecipe RecipeSpace::draw(uint64_t seed, int number_of_try, int ranks) const {
  DrawnRecipe drawn{base_, ranks};
  RandomKey key = RandomKey(seed, "recipe").fold_in(number_of_try);
  std::set<std::string> tags;
  const auto allows = [&tags](const std::set<std::string>& with) {
    return std::ranges::includes(tags, with);
  };
  for (const Draw& draw : draws_) {
    key = key.fold_in(1);
    if (!allows(draw.with) || key.uniform(0) >= draw.probability) continue;
    std::vector<const Option*> possible;
    for (const Option& option : draw.options)
      if (allows(option.with)) possible.insert(possible.end(), option.weight, &option);
    auto count = draw.least + static_cast<int64_t>(key.below(draw.most - draw.least + 1, 1));
    for (uint64_t counter = 2; count > 0 && !possible.empty(); --count, ++counter) {
      const Option* const option = possible[key.below(possible.size(), counter)];
      add_keys(drawn.recipe, option->keys);
      tags.insert(option->tags.begin(), option->tags.end());
      std::erase(possible, option);
    }
  }
  if (const Setting* own = drawn.recipe.find(kRanks)) {
    drawn.ranks = static_cast<int>(own->integer());
    erase_members(drawn.recipe, {kRanks});
  }
  return drawn;
}

}  // namespace tutti
