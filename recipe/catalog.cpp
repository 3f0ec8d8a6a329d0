#include "recipe/catalog.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "runtime/nearest_name.h"

namespace tutti {
namespace {

const char* type_text(KeyType type) {
  switch (type) {
    case KeyType::kBoolean:
      return "true or false";
    case KeyType::kInteger:
      return "an integer";
    case KeyType::kNumber:
      return "a number";
    case KeyType::kText:
      return "a text";
    case KeyType::kTime:
      return "a time";
    case KeyType::kPath:
      return "a path";
    case KeyType::kIntegers:
      return "a list of integers";
    case KeyType::kNumbers:
      return "a list of numbers";
    case KeyType::kTexts:
      return "a list of texts";
    case KeyType::kTimes:
      return "a list of times";
    case KeyType::kNumberOrNumbers:
      return "a number or a list of numbers";
    case KeyType::kIntegerOrIntegers:
      return "an integer or a list of integers";
    case KeyType::kIntegerOrSteps:
      return "a list of [step, integer], the first for step 0, or an integer";
    case KeyType::kBooleanIntegerOrTexts:
      return "true, false, a list of texts, or an integer";
    case KeyType::kNamedTexts:
      return "a table of texts";
    case KeyType::kTextOrTexts:
      return "a text or a list of texts";
    case KeyType::kTextsOrNamedTexts:
      return "a list of texts or a table of texts";
    case KeyType::kTables:
      return "tables";
    case KeyType::kTable:
      return "a table";
    case KeyType::kKindOrTable:
      return "a name or a table with a kind";
    case KeyType::kAny:
      return "any value";
  }
  return "";
}

std::string units_text(const std::vector<std::string>& units) {
  if (units.empty()) return " like 10ep, 500ba, 0.5dur or 1h20m (an integer counts epochs)";
  if (units == std::vector<std::string>{"sec"}) return " in seconds like 60sec or 1m30s";
  return " in " + joined(units);
}

// "metric (a text), keep (an integer >= 1)"
std::string members_text(const Catalog& table) {
  std::string text;
  for (const Key& key : table.keys)
    text += (text.empty() ? "" : ", ") + key.name + " (" + key.expects() + ')';
  return text;
}

}  // namespace

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

bool Range::holds(double value) const {
  return (above ? value > low : value >= low) && (below ? value < high : value <= high);
}

std::string Range::text() const {
  std::ostringstream out;
  const bool has_low = std::isfinite(low);
  const bool has_high = std::isfinite(high);
  if (has_low && has_high) {
    out << "in " << (above ? '(' : '[') << low << ", " << high << (below ? ')' : ']');
  } else if (has_low) {
    out << (above ? "> " : ">= ") << low;
  } else if (has_high) {
    out << (below ? "< " : "<= ") << high;
  }
  return out.str();
}

std::string Key::expects() const {
  std::string text = choices.empty() ? type_text(type) : "one of " + joined(choices);
  if (choices.empty() && (type == KeyType::kTime || type == KeyType::kTimes)) text += units_text(units);
  for (const auto& [name, choice] : synonyms) text += ", " + name + " (" + choice + ')';
  const bool have_kinds = tables && !tables->entries.empty();
  if (type == KeyType::kTables && have_kinds) text += ", each with a kind: one of " + joined(tables->kinds());
  if (type == KeyType::kPath && tables) text += " or a table with the keys of [" + tables->section + ']';
  if (type == KeyType::kKindOrTable) text += ": one of " + joined(tables->kinds());
  if (type == KeyType::kTable || (type == KeyType::kTables && !have_kinds))
    text += " of " + members_text(*tables);
  if (const std::string bounds = range.text(); !bounds.empty()) text += ' ' + bounds;
  for (const auto& word : words) text += " or \"" + word + '"';
  return text;
}

bool Key::may_be_absent() const {
  return fallback == "none" && std::ranges::find(choices, fallback) == choices.end();
}

const std::string& Key::choice_named(const std::string& text) const {
  for (const auto& [name, choice] : synonyms)
    if (name == text) return choice;
  return text;
}

Key Key::also_named(std::vector<std::string> names) && {
  aliases = std::move(names);
  return std::move(*this);
}

Key Key::one_of(std::vector<std::string> values) && {
  choices = std::move(values);
  return std::move(*this);
}

Key Key::also_written(std::vector<std::pair<std::string, std::string>> names) && {
  synonyms = std::move(names);
  return std::move(*this);
}

Key Key::or_word(std::string word) && {
  words.push_back(std::move(word));
  return std::move(*this);
}

Key Key::in_units(std::vector<std::string> names) && {
  units = std::move(names);
  return std::move(*this);
}

Key Key::at_least(double value) && {
  range.low = value;
  range.above = false;
  return std::move(*this);
}

Key Key::more_than(double value) && {
  range.low = value;
  range.above = true;
  return std::move(*this);
}

Key Key::at_most(double value) && {
  range.high = value;
  range.below = false;
  return std::move(*this);
}

Key Key::less_than(double value) && {
  range.high = value;
  range.below = true;
  return std::move(*this);
}

Key Key::each(std::shared_ptr<const Catalog> table) && {
  tables = std::move(table);
  return std::move(*this);
}

Key Key::not_carried_over(const std::string& reason) && {
  refusal = doc = "not carried over: " + reason;
  return std::move(*this);
}

Entry refused_entry(const std::string& name, const std::string& why) {
  return {.name = name, .doc = why, .refusal = why};
}

const Entry* Catalog::find_entry(const std::string& kind) const {
  if (kind.empty()) return nullptr;
  const auto called = std::ranges::find_if(
      entries, [&](const Entry& entry) { return entry.name == kind || entry.origin.composer == kind; });
  if (called != entries.end()) return &*called;
  const auto spelled = std::ranges::find_if(entries, [&](const Entry& entry) {
    return same_name(entry.name, kind) || same_name(entry.name + noun, kind) ||
           same_name(entry.origin.composer, kind);
  });
  return spelled == entries.end() ? nullptr : &*spelled;
}

std::vector<std::string> Catalog::kinds() const {
  std::vector<std::string> names;
  for (const auto& entry : entries)
    if (entry.refusal.empty()) names.push_back(entry.name);
  return names;
}

std::vector<std::string> Catalog::refused_kinds() const {
  std::vector<std::string> names;
  for (const auto& entry : entries)
    if (!entry.refusal.empty()) names.push_back(entry.name);
  return names;
}

std::vector<Key> Catalog::keys_of(const Entry* entry) const {
  std::vector<Key> all = keys;
  if (entry) all.insert(all.end(), entry->keys.begin(), entry->keys.end());
  return all;
}

}  // namespace tutti
