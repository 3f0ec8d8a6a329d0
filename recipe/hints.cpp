#include "recipe/hints.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "recipe/dotted_path.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

constexpr std::size_t kMostPlaces = 3;

std::string heading(const Catalog& catalog) {
  if (catalog.section.empty()) return "the top level";
  return catalog.repeated ? "[[" + catalog.section + "]]" : '[' + catalog.section + ']';
}

std::string place_of(const Catalog& catalog, const Entry& entry) {
  return heading(catalog) + " kind = \"" + entry.name + '"';
}

std::string did_you_mean(const std::string& name) { return "; did you mean " + name + "?"; }

// "a, b or c"
std::string either(const Names& names) {
  if (names.size() < 2) return joined(names);
  return joined(Names(names.begin(), names.end() - 1)) + " or " + names.back();
}

Names names_of(const Key& key) {
  Names names = key.aliases;
  names.insert(names.begin(), key.name);
  return names;
}

bool is_called(const Key& key, const std::string& name) {
  return std::ranges::any_of(names_of(key), [&](const std::string& one) { return same_name(one, name); });
}

const Key* key_called(const std::vector<Key>& keys, const std::string& name) {
  const auto called = std::ranges::find_if(keys, [&](const Key& key) { return is_called(key, name); });
  return called == keys.end() ? nullptr : &*called;
}

// The kinds with such a key.
Names kinds_with(const Catalog& catalog, const std::string& name) {
  Names kinds;
  for (const Entry& entry : catalog.entries)
    if (key_called(entry.keys, name)) kinds.push_back(entry.name);
  return kinds;
}

// The key's own name in the section or in a kind of it; "" = there is none.
std::string own_name(const Catalog& catalog, const std::string& name) {
  if (const Key* key = key_called(catalog.keys, name)) return key->name;
  for (const Entry& entry : catalog.entries)
    if (const Key* key = key_called(entry.keys, name)) return key->name;
  return "";
}

// "[optimizer]", "[scheduler] of kind one_cycle_lr"; "" = the section has no such key.
std::string place_with(const Catalog& catalog, const std::string& name) {
  if (const Key* key = key_called(catalog.keys, name); key && key->refusal.empty()) return heading(catalog);
  const Names kinds = kinds_with(catalog, name);
  if (kinds.empty()) return "";
  const bool few = kinds.size() < catalog.entries.size() && kinds.size() <= kMostPlaces;
  return heading(catalog) + (few ? " of kind " + either(kinds) : "");
}

std::string similar_in(const Names& names, const std::string& name) {
  const std::string near = nearest_name(name, names);
  return !near.empty() && (same_name(near, name) || similar_name(near, name)) ? near : "";
}

bool is_of_recipe(const ForeignName& name) { return name.target.empty() || name.target.starts_with('['); }

}  // namespace

// A whole name may stand for anything; a part of one only for what a recipe may have.
const ForeignName* NameHints::foreign(const std::string& name) const {
  const auto foreign_place = std::ranges::find_if(foreign_, [&](const ForeignName& foreign_name) {
    return foreign_name.is_called(name) &&
           (foreign_name.name.size() == name.size() || is_of_recipe(foreign_name));
  });
  return foreign_place == foreign_.end() ? nullptr : &*foreign_place;
}

// The path of the key that a place names: "train.max_duration" of "[train] max_duration".
std::string NameHints::meant_by(const std::string& target) const {
  for (const Catalog& catalog : catalogs_) {
    if (heading(catalog) == target) return catalog.section;
    for (const Key& key : catalog.keys)
      if (heading(catalog) + ' ' + key.name == target) return path_below(catalog.section, key.name);
  }
  return "";
}

NameHint NameHints::elsewhere(const std::string& section, const std::string& name) const {
  Names places;
  NameHint hint;
  for (const Catalog& catalog : catalogs_) {
    const std::string place = catalog.section == section ? "" : place_with(catalog, name);
    if (place.empty() || places.size() == kMostPlaces) continue;
    places.push_back(place);
    if (hint.meant.empty()) hint.meant = path_below(catalog.section, own_name(catalog, name));
  }
  if (!places.empty()) hint.text = "; it belongs in " + either(places);
  return hint;
}

NameHint NameHints::nearly_elsewhere(const std::string& name) const {
  constexpr std::size_t kLeast = 4;  // shorter ones are similar by chance
  if (name.size() < kLeast) return {};
  for (const Catalog& catalog : catalogs_) {
    Names names;
    for (const Key& key : catalog.keys)
      if (key.refusal.empty()) names.push_back(key.name);
    const std::string near = similar_in(names, name);
    if (!near.empty())
      return {did_you_mean(heading(catalog) + ' ' + near), path_below(catalog.section, near)};
  }
  return {};
}

NameHint NameHints::for_key(const Catalog& catalog, const Entry* entry, const std::string& path,
                            const std::string& name, const Names& known) const {
  const auto own = [&](const std::string& near) {
    const std::string meant = own_name(catalog, near);
    return NameHint{did_you_mean(near), path_below(path, meant.empty() ? near : meant)};
  };
  const std::string near = nearest_name(name, known);
  if (same_name(near, name)) return own(near);
  if (const ForeignName* here = foreign(path_below(path, name)))
    return {"; " + here->translation(), meant_by(here->target)};
  const Names kinds = entry ? kinds_with(catalog, name) : Names();
  if (!kinds.empty()) return {"; it is a key of " + either(kinds)};
  const ForeignName* foreign_name = foreign(name);
  const bool is_similar = !near.empty() && similar_name(near, name);
  if (foreign_name && (is_of_recipe(*foreign_name) || near.empty()))
    return {"; " + foreign_name->translation(), meant_by(foreign_name->target)};
  if (is_similar) return own(near);
  if (NameHint other = elsewhere(catalog.section, name); !other.text.empty()) return other;
  if (NameHint other = nearly_elsewhere(name); !other.text.empty()) return other;
  if (!near.empty()) return own(near);
  return {"; there are " + joined(known)};
}

NameHints::KindHint NameHints::for_kind(const Catalog& catalog, const std::string& name) const {
  const std::string base = last_part(name);
  const auto told = [](const Entry& entry) {
    return KindHint{
        entry.refusal.empty() ? did_you_mean(entry.name) : "; " + entry.name + ": " + entry.refusal,
        entry.refusal.empty() ? &entry : nullptr};
  };
  for (const Entry& entry : catalog.entries)
    if (same_name(entry.name, base) || same_name(entry.origin.composer, base)) return told(entry);
  if (const ForeignName* foreign_name = foreign(base)) {
    for (const Entry& entry : catalog.entries)
      if (place_of(catalog, entry) == foreign_name->target) return told(entry);
    return {"; " + foreign_name->translation()};
  }
  Names kinds = catalog.kinds(), all = catalog.refused_kinds();
  all.insert(all.end(), kinds.begin(), kinds.end());
  const std::string near = nearest_name(base, all);
  if (!near.empty() && similar_name(near, base)) return {told(*catalog.find_entry(near)).text};
  for (const Catalog& other : catalogs_)
    for (const Entry& entry : other.entries)
      if (other.noun != catalog.noun && same_name(entry.name, base))
        return {"; " + entry.name + " is one of the " + other.noun + "s: " + place_of(other, entry)};
  if (!near.empty()) return {told(*catalog.find_entry(near)).text};
  return {"; expected one of " + joined(kinds)};
}

namespace {

using Values = std::vector<Setting::Value>;
using Words = std::vector<std::pair<const char*, std::vector<const char*>>>;

// PyTorch's and Lightning's words for values of ours.
const Words kOtherWords = {{"fp32", {"float32", "float", "32", "32-true", "full"}},
                           {"amp_fp16", {"float16", "half", "16", "mixed", "mixed_fp16"}},
                           {"amp_bf16", {"bfloat16"}},
                           {"gpu", {"cuda"}},
                           {"cpu", {"mps"}}};

const Words kUnits = {{"ep", {"e", "ep", "eps", "epoch", "epochs"}},
                      {"ba",
                       {"b", "ba", "batch", "batches", "step", "steps", "it", "its", "iters", "iteration",
                        "iterations", "update", "updates"}},
                      {"sp", {"sp", "sample", "samples"}},
                      {"tok", {"tok", "toks", "token", "tokens"}},
                      {"dur", {"dur", "duration"}},
                      {"s", {"s", "sec", "secs", "second", "seconds"}},
                      {"m", {"m", "min", "mins", "minute", "minutes"}},
                      {"h", {"h", "hr", "hrs", "hour", "hours"}}};

// The name of ours for another word; "" = none.
std::string ours(const Words& words, const std::string& word) {
  for (const auto& [name, others] : words)
    for (const char* other : others)
      if (lower_case(word) == other) return name;
  return "";
}

std::string inner_text(const std::string& text) {
  const auto first = text.find_first_not_of(' ');
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(' ') - first + 1);
}

struct Quantity {
  double number;
  std::string unit;  // as written, lower case; may be ""
};

std::optional<Quantity> quantity(const std::string& text) {
  const std::string plain = lower_case(inner_text(text));
  Quantity read{};
  const auto [end, error] = std::from_chars(plain.data(), plain.data() + plain.size(), read.number);
  if (error != std::errc() || !std::isfinite(read.number)) return std::nullopt;
  read.unit = inner_text(std::string(end, plain.data() + plain.size()));
  return read;
}

constexpr double kMostWhole = 1e15;

bool is_whole(double number) { return number == std::trunc(number) && std::abs(number) < kMostWhole; }

std::string shortest_digits(double number) {
  if (is_whole(number)) return std::to_string(static_cast<int64_t>(number));
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number).ptr};
}

// "1h30m" of 5400 seconds, "90000sec" from a day on.
std::string clock_text(double seconds) {
  const double whole = std::round(seconds);
  if (!(whole > 0 && whole < 86400)) return shortest_digits(whole) + "sec";
  const auto count = static_cast<int64_t>(whole);
  std::string text;
  for (const auto& [part, unit] :
       {std::pair<int64_t, char>{count / 3600, 'h'}, {count / 60 % 60, 'm'}, {count % 60, 's'}})
    if (part > 0) text += std::to_string(part) + unit;
  return text;
}

void add_times(const Quantity& time, Values& values) {
  if (time.unit.empty()) {
    for (const char* unit : {"ep", "sec"}) values.emplace_back(shortest_digits(time.number) + unit);
    return;
  }
  const std::string unit = ours(kUnits, time.unit);
  if (unit == "s" || unit == "m" || unit == "h") {
    const double seconds = time.number * (unit == "s" ? 1 : unit == "m" ? 60 : 3600);
    values.emplace_back(unit == "s" ? shortest_digits(seconds) + "sec" : clock_text(seconds));
  } else if (!unit.empty()) {
    values.emplace_back(shortest_digits(time.number) + unit);
  }
}

bool is_time(const Key& key) { return key.type == KeyType::kTime || key.type == KeyType::kTimes; }

void add_of_number(const Key& key, double number, Values& values) {
  if (is_time(key)) add_times({number, ""}, values);
  if (is_whole(number)) values.emplace_back(static_cast<int64_t>(number));
  values.emplace_back(number);
}

void add_of_text(const Key& key, const std::string& text, Values& values) {
  const std::string lower = lower_case(inner_text(text));
  if (lower == "true" || lower == "yes" || lower == "on") values.emplace_back(true);
  if (lower == "false" || lower == "no" || lower == "off") values.emplace_back(false);
  if (const auto read = quantity(text)) {
    if (read->unit.empty()) add_of_number(key, read->number, values);
    if (is_time(key)) add_times(*read, values);
    if (read->unit == "%" && is_time(key)) values.emplace_back(shortest_digits(read->number / 100) + "dur");
  }
  std::vector<std::string> known = key.choices;
  known.insert(known.end(), key.words.begin(), key.words.end());
  for (const auto& [name, choice] : key.synonyms) known.push_back(name);
  if (key.type == KeyType::kKindOrTable) {
    const std::vector<std::string> kinds = key.tables->kinds();
    known.insert(known.end(), kinds.begin(), kinds.end());
  }
  values.emplace_back(ours(kOtherWords, text));
  values.emplace_back(nearest_name(text, known));
}

Values guesses(const Key& key, const Setting& given) {
  Values values;
  if (given.is_text()) {
    add_of_text(key, given.text(), values);
  } else if (const bool* flag = std::get_if<bool>(&given.value)) {
    values.emplace_back(std::string(*flag ? "true" : "false"));
  } else if (given.is_integer() || std::holds_alternative<double>(given.value)) {
    if (given.number() == 0 || given.number() == 1) values.emplace_back(given.number() == 1);
    add_of_number(key, given.number(), values);
    if (key.type == KeyType::kText) values.emplace_back(shortest_digits(given.number()));
  }
  const bool is_one = !given.is_array() && !given.is_table() && key.type != KeyType::kTables;
  if (is_one) values.emplace_back(Setting::Array{given});
  return values;
}

}  // namespace

std::string value_hint(const Key& key, const Setting& given,
                       const std::function<bool(const Setting&)>& accepts) {
  for (Setting::Value& value : guesses(key, given)) {
    const auto* text = std::get_if<std::string>(&value);
    if (text && text->empty()) continue;
    const Setting guess(std::move(value), given.path, given.position);
    if (guess.toml() != given.toml() && accepts(guess)) return guess.toml();
  }
  return "";
}

namespace {

std::string without_blanks(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string line_of(const std::string& text, int line) {
  std::istringstream in(text);
  std::string guess;
  for (int i = 0; i < line; ++i) std::getline(in, guess);
  return without_blanks(guess.substr(0, guess.find('#')));
}

// A text without quotes, a number with a unit.
bool is_bare_word(const std::string& value) {
  const auto is_of_word = [](unsigned char c) {
    return std::isalnum(c) || c > 0x7f || std::strchr("_-+./~ ", c);
  };
  return !value.empty() && std::ranges::all_of(value, is_of_word);
}

bool is_toml(const std::string& value) try {
  return !toml::parse("value = " + value).empty();
} catch (const toml::parse_error&) {
  return false;
}

std::string hint_for(const std::string& value) {
  const std::string lower = lower_case(value);
  if (value.empty()) return "; there is no value behind the =";
  if (lower == "true" || lower == "yes" || lower == "on") return "; did you mean true?";
  if (lower == "false" || lower == "no" || lower == "off") return "; did you mean false?";
  if (lower == "none" || lower == "null" || lower == "nil") return "; to give no value, leave the key out";
  if (is_toml(value)) return "";
  if (is_bare_word(value)) return "; texts stand in quotes: \"" + shown(value) + '"';
  return "";
}

}  // namespace

std::string toml_hint(const std::string& text, int line) {
  const std::string written = line_of(text, line);
  if (written.empty() || written[0] == '[') return "";
  const std::size_t equals = written.find('=');
  if (equals == written.npos) {
    const bool is_yaml = written.find(": ") != written.npos || written.ends_with(':');
    return is_yaml ? "; expected key = value, not key: value" : "; expected key = value";
  }
  return hint_for(without_blanks(written.substr(equals + 1)));
}

}  // namespace tutti
