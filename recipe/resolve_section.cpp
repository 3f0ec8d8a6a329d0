#include <algorithm>

#include "recipe/key_check.h"
#include "recipe/resolve.h"
#include "runtime/text.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

std::string did_you_mean(const std::string& name) {
  return name.empty() ? "" : "; did you mean " + name + "?";
}

// Resolves a table of the recipe.
class SectionResolver {
 public:
  SectionResolver(const Catalog& catalog, const Setting& given, const SectionOrigin& origin)
      : catalog_(catalog), given_(given), origin_(origin) {
    if (!given.is_table()) given.fail("expected a table, [" + given.path + "] with its keys below");
  }

  Setting resolved() {
    choose_kind();
    keys_ = catalog_.keys_of(entry_);
    refuse_unknown();
    Setting::Table members;
    if (entry_) members.emplace_back("kind", kind_);
    for (const auto& key : keys_) members.emplace_back(key.name, value_of(key));
    for (const auto& alternatives : catalog_.alternatives) apply_alternatives(alternatives, members);
    return Setting(std::move(members), given_.path, given_.position);
  }

 private:
  void choose_kind() {
    if (catalog_.entries.empty()) return;
    const Setting* kind = given_.find("kind");
    if (kind) {
      kind_ = *kind;
    } else if (catalog_.default_kind.empty() || catalog_.may_be_absent()) {
      fail_missing("kind", "one of " + joined(catalog_.kinds()));
    } else {
      kind_ = Setting(catalog_.default_kind, path_below(given_.path, "kind"), given_.position);
    }
    entry_ = catalog_.find_entry(kind_.text());
    if (entry_ && !entry_->refusal.empty()) kind_.fail(entry_->refusal);
    if (entry_) {
      kind_.value = entry_->name;
      return;
    }
    const std::string near = nearest_name(kind_.text(), catalog_.kinds());
    kind_.fail("unknown " + catalog_.noun + "; " +
               (near.empty() ? "expected one of " + joined(catalog_.kinds()) : "did you mean " + near + "?"));
  }

  [[noreturn]] void fail_missing(const std::string& key, const std::string& meaning) const {
    if (origin_.missing) given_.fail("the section is missing; it needs " + key + " (" + meaning + ")");
    given_.fail(key + " is missing (" + meaning + ")");
  }

  Names known_names() const {
    Names names;
    for (const auto& key : keys_) {
      names.push_back(key.name);
      names.insert(names.end(), key.aliases.begin(), key.aliases.end());
    }
    return names;
  }

  void refuse_unknown() const {
    Names known = known_names();
    if (entry_) known.push_back("kind");
    for (const auto& [name, member] : given_.table()) {
      const auto is_name = [&name = name](const std::string& other) { return other == name; };
      if (std::ranges::any_of(known, is_name) || std::ranges::any_of(origin_.foreign, is_name)) continue;
      known.insert(known.end(), origin_.foreign.begin(), origin_.foreign.end());
      fail_unknown(name, member, known);
    }
  }

  [[noreturn]] void fail_unknown(const std::string& name, const Setting& member, const Names& known) const {
    const bool section = member.is_table() && catalog_.section.empty();
    std::string message = section ? "unknown section" : "unknown key";
    if (entry_) message += " of " + catalog_.noun + ' ' + entry_->name;
    const std::string kinds = joined(kinds_with(name));
    if (!kinds.empty()) member.fail(message + "; it is one of " + kinds);
    const std::string near = nearest_name(name, known);
    member.fail(message + (near.empty() ? "; there are " + joined(known) : did_you_mean(near)));
  }

  Names kinds_with(const std::string& name) const {
    Names kinds;
    for (const auto& entry : catalog_.entries) {
      for (const auto& key : entry.keys) {
        if (key.name == name || std::ranges::count(key.aliases, name)) kinds.push_back(entry.name);
      }
    }
    return kinds;
  }

  Setting value_of(const Key& key) const {
    const Setting* given = given_.find(key.name);
    std::string given_name = key.name;
    for (const auto& alias : key.aliases) {
      const Setting* other = given_.find(alias);
      if (!other) continue;
      if (given && given->is_override() == other->is_override()) fail_both(*other, *given, given_name);
      if (given && given->is_override()) continue;
      given = other;
      given_name = alias;
    }
    if (!given || given->is_none()) return default_of(key);
    Setting value = checked(key, *given);
    value.path = path_below(given_.path, key.name);
    if (key.type == KeyType::kPath) value = as_absolute(key, std::move(value));
    if (key.type == KeyType::kTables) value = with_tables_resolved(key, value);
    return value;
  }

  [[noreturn]] static void fail_both(const Setting& one, const Setting& other,
                                     const std::string& other_name) {
    one.fail("given as " + other_name + " too (" + other.position.text() + "); keep one of the two");
  }

  Setting default_of(const Key& key) const {
    if (key.required()) fail_missing(key.name, key.doc + ": " + key.expects());
    return fallback_value(key, path_below(given_.path, key.name), given_.position);
  }

  Setting as_absolute(const Key& key, Setting value) const {
    if (std::ranges::count(key.words, value.text())) return value;
    value.value = (origin_.folder / value.text()).lexically_normal().string();
    if (!is_utf8(value.text())) value.fail("expected a path in UTF-8");
    return value;
  }

  Setting with_tables_resolved(const Key& key, const Setting& given) const {
    Setting::Array tables;
    for (const auto& table : given.array())
      tables.push_back(resolve_section(*key.tables, table, {.folder = origin_.folder}));
    return Setting(std::move(tables), given.path, given.position);
  }

  // Keeps one of the keys given: an override removes keys of the file.
  void apply_alternatives(const Alternatives& alternatives, Setting::Table& members) const {
    Setting* chosen = nullptr;
    for (auto& [name, member] : members) {
      if (!std::ranges::count(alternatives.keys, name) || member.is_none()) continue;
      if (chosen && chosen->is_override() == member.is_override()) {
        member.fail("excludes " + chosen->path + " (" + chosen->position.text() + "); keep one of the two");
      }
      if (chosen) (chosen->is_override() ? member : *chosen).value = std::monostate{};
      if (!member.is_none()) chosen = &member;
    }
    if (!chosen && alternatives.required) fail_missing(alternatives.keys[0], one_of_text(alternatives));
  }

  static std::string one_of_text(const Alternatives& alternatives) {
    const Names others(alternatives.keys.begin() + 1, alternatives.keys.end());
    return "or " + joined(others) + " in its place";
  }

  const Catalog& catalog_;
  const Setting& given_;
  const SectionOrigin& origin_;
  const Entry* entry_ = nullptr;
  Setting kind_;
  std::vector<Key> keys_;
};

}  // namespace

Setting resolve_section(const Catalog& catalog, const Setting& given, const SectionOrigin& origin) {
  return SectionResolver(catalog, given, origin).resolved();
}

}  // namespace tutti
