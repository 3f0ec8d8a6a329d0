#include "recipe/name_hints.h"

#include <algorithm>

#include "runtime/nearest_name.h"

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
  const auto found = std::ranges::find_if(keys, [&](const Key& key) { return is_called(key, name); });
  return found == keys.end() ? nullptr : &*found;
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
  if (key_called(catalog.keys, name)) return heading(catalog);
  const Names kinds = kinds_with(catalog, name);
  if (kinds.empty()) return "";
  const bool few = kinds.size() < catalog.entries.size() && kinds.size() <= kMostPlaces;
  return heading(catalog) + (few ? " of kind " + either(kinds) : "");
}

std::string similar_in(const Names& names, const std::string& name) {
  const std::string near = nearest_name(name, names);
  return !near.empty() && (same_name(near, name) || similar_name(near, name)) ? near : "";
}

bool is_of_recipe(const ForeignName& one) { return one.target.empty() || one.target.starts_with('['); }

// "AdamW" of "torch.optim.AdamW".
std::string last_part(const std::string& name) { return name.substr(name.find_last_of('.') + 1); }

}  // namespace

// A whole name may stand for anything; a part of one only for what a recipe may have.
const ForeignName* NameHints::foreign(const std::string& name) const {
  const auto found = std::ranges::find_if(foreign_, [&](const ForeignName& one) {
    return one.is_called(name) && (one.name.size() == name.size() || is_of_recipe(one));
  });
  return found == foreign_.end() ? nullptr : &*found;
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
    for (const Key& key : catalog.keys) names.push_back(key.name);
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
  const Names kinds = entry ? kinds_with(catalog, name) : Names();
  if (!kinds.empty()) return {"; it is a key of " + either(kinds)};
  const ForeignName* one = foreign(name);
  const bool is_similar = !near.empty() && similar_name(near, name);
  if (one && (is_of_recipe(*one) || near.empty())) return {"; " + one->translation(), meant_by(one->target)};
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
  if (const ForeignName* one = foreign(base)) {
    for (const Entry& entry : catalog.entries)
      if (place_of(catalog, entry) == one->target) return told(entry);
    return {"; " + one->translation()};
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

}  // namespace tutti
