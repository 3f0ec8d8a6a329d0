#include "recipe/resolve.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "recipe/dotted_path.h"
#include "recipe/hints.h"
#include "recipe/key_check.h"
#include "recipe/placeholders.h"
#include "runtime/nearest_name.h"
#include "runtime/text.h"
#include "runtime/user_errors.h"

namespace tutti {
namespace {

using Names = std::vector<std::string>;

// The mistakes of a recipe that is being resolved.
struct Mistakes {
  const NameHints& hints;
  MistakeCollector all = {};
  std::vector<std::pair<std::string, UserError>> missing = {};  // by the path of the key or section
  std::set<std::string> meant = {};  // paths that misspelt or misplaced names stand for

  // Throws all mistakes. A missing key is not counted if a misspelt name stands for it.
  void throw_all();
};

void Mistakes::throw_all() {
  for (const auto& [path, error] : missing)
    if (!meant.contains(path)) all.add(error);
  all.throw_all();
}

// Resolves a table as resolve_section does, but notes mistakes; the result is whole if there is none.
Setting resolve_table(const Catalog& catalog, const Setting& given, const SectionOrigin& origin,
                      Mistakes& mistakes);

// Resolves a table of the recipe.
class SectionResolver {
 public:
  SectionResolver(const Catalog& catalog, const Setting& given, const SectionOrigin& origin,
                  Mistakes& mistakes)
      : catalog_(catalog), given_(given), origin_(origin), mistakes_(mistakes) {}

  Setting resolved() {
    Setting::Table members;
    const bool is_table = mistakes_.all.collect([this] {
      if (!given_.is_table())
        given_.fail("expected a table, [" + given_.path + "] with its keys below" +
                    mistakes_.hints.elsewhere(given_.path, given_.path).text);
    });
    if (is_table) {
      mistakes_.all.collect([this] { choose_kind(); });
      entry_ || catalog_.entries.empty() ? resolve_keys(members) : check_common_keys();
    }
    return Setting(std::move(members), given_.path, given_.position);
  }

 private:
  void resolve_keys(Setting::Table& members) {
    keys_ = catalog_.keys_of(entry_);
    refuse_unknown();
    if (entry_) members.emplace_back("kind", kind_);
    for (const auto& key : keys_)
      mistakes_.all.collect([&] { members.emplace_back(key.name, value_of(key)); });
    for (const auto& alternatives : catalog_.alternatives)
      mistakes_.all.collect([&] { apply_alternatives(alternatives, members); });
  }

  // Without a kind the table's keys are unknown.
  void check_common_keys() {
    for (const auto& key : catalog_.keys)
      if (given_.find(key.name)) mistakes_.all.collect([&] { value_of(key); });
  }

  void choose_kind() {
    if (catalog_.entries.empty()) return;
    const Setting* kind = given_.find("kind");
    if (kind) {
      kind_ = *kind;
    } else if (catalog_.default_kind.empty() || catalog_.may_be_absent()) {
      note_missing("kind", "one of " + joined(catalog_.kinds()));
      return;
    } else {
      kind_ = Setting(catalog_.default_kind, path_below(given_.path, "kind"), given_.position);
    }
    entry_ = catalog_.find_entry(kind_.text());
    if (!entry_) fail_kind();
    if (!entry_->refusal.empty()) {
      const std::string& why = std::exchange(entry_, nullptr)->refusal;
      kind_.fail(why);
    }
    kind_.value = entry_->name;
  }

  // Keys are checked as those of the kind that is meant.
  [[noreturn]] void fail_kind() {
    const auto hint = mistakes_.hints.for_kind(catalog_, kind_.text());
    entry_ = hint.entry;
    kind_.fail("unknown " + catalog_.noun + hint.text);
  }

  void note_missing(const std::string& key, const std::string& meaning) const {
    const auto note = [&](const std::string& path, const std::string& message) {
      try {
        given_.fail(message);
      } catch (const UserError& error) {
        mistakes_.missing.emplace_back(path, error);
      }
    };
    if (!origin_.missing) return note(path_below(given_.path, key), key + " is missing (" + meaning + ")");
    const bool known =
        std::ranges::any_of(mistakes_.missing, [&](const auto& one) { return one.first == given_.path; });
    if (!known) note(given_.path, "the section is missing; it needs " + key + " (" + meaning + ")");
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
    known.insert(known.end(), origin_.foreign.begin(), origin_.foreign.end());
    for (const auto& [name, member] : given_.table())
      if (std::ranges::count(known, name) == 0)
        mistakes_.all.collect([&] { fail_unknown(name, member, known); });
  }

  [[noreturn]] void fail_unknown(const std::string& name, const Setting& member, const Names& known) const {
    const bool section = member.is_table() && catalog_.section.empty();
    const std::string what = section ? "unknown section" : "unknown key";
    const NameHint hint = mistakes_.hints.for_key(catalog_, entry_, given_.path, name, known);
    mistakes_.meant.insert(hint.meant);
    member.fail_key(what + (entry_ ? " of " + catalog_.noun + ' ' + entry_->name : "") + hint.text);
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
    if (given_name != key.name) value.written_path = path_below(given_.path, given_name);
    if (key.type == KeyType::kPath && value.is_text()) value = as_absolute(key, std::move(value));
    if (key.type == KeyType::kTables) value = with_tables_resolved(key, value);
    if (value.is_table() && (key.type == KeyType::kTable || key.type == KeyType::kPath))
      value = resolve_table(*key.tables, value, {.folder = origin_.folder}, mistakes_);
    if (key.type == KeyType::kKindOrTable) value = with_kind_resolved(key, value);
    return value;
  }

  [[noreturn]] static void fail_both(const Setting& first, const Setting& second,
                                     const std::string& other_name) {
    first.fail_key("given as " + other_name + " too (" + second.position.text() + "); keep one of the two");
  }

  Setting default_of(const Key& key) const {
    if (key.required()) {
      note_missing(key.name, key.doc + ": " + key.expects());
      return Setting({}, path_below(given_.path, key.name), given_.position);
    }
    return fallback_value(key, path_below(given_.path, key.name), given_.position);
  }

  Setting as_absolute(const Key& key, Setting value) const {
    if (std::ranges::count(key.words, value.text())) return value;
    if (is_remote_path(value.text()) && std::ranges::any_of(key.words, is_remote_path)) return value;
    if (value.written.empty()) value.written = value.text();
    value.value = (origin_.folder / value.text()).lexically_normal().string();
    if (!is_utf8(value.text())) value.fail("expected a path in UTF-8");
    return value;
  }

  Setting with_tables_resolved(const Key& key, const Setting& given) const {
    Setting::Array tables;
    for (const auto& table : given.array())
      tables.push_back(resolve_table(*key.tables, table, {.folder = origin_.folder}, mistakes_));
    return Setting(std::move(tables), given.path, given.position);
  }

  // A name stays as it is, since earlier recipes are compared with this one.
  Setting with_kind_resolved(const Key& key, const Setting& given) const {
    if (given.is_text() && std::ranges::count(key.words, given.text()) > 0) return given;
    const Setting table = given.is_text() ? table_of_kind(given) : given;
    const Setting resolved = resolve_table(*key.tables, table, {.folder = origin_.folder}, mistakes_);
    return given.is_text() ? given : resolved;
  }

  // Keeps one of the keys given: an override removes keys of the file.
  void apply_alternatives(const Alternatives& alternatives, Setting::Table& members) const {
    Setting* chosen = nullptr;
    for (auto& [name, member] : members) {
      if (!std::ranges::count(alternatives.keys, name) || member.is_none()) continue;
      if (chosen && chosen->is_override() == member.is_override()) {
        member.fail_key("excludes " + chosen->path_as_written() + " (" + chosen->position.text() +
                        "); keep one of the two");
      }
      if (chosen) (chosen->is_override() ? member : *chosen).value = std::monostate{};
      if (!member.is_none()) chosen = &member;
    }
    if (chosen || !alternatives.required) return;
    const Names others(alternatives.keys.begin() + 1, alternatives.keys.end());
    for (const auto& key : alternatives.keys)  // wrong, misspelt
      if (given_.find(key) || mistakes_.meant.contains(path_below(given_.path, key))) return;
    note_missing(alternatives.keys[0], "or " + joined(others) + " in its place");
  }

  const Catalog& catalog_;
  const Setting& given_;
  const SectionOrigin& origin_;
  Mistakes& mistakes_;
  const Entry* entry_ = nullptr;
  Setting kind_;
  std::vector<Key> keys_;
};

Setting resolve_table(const Catalog& catalog, const Setting& given, const SectionOrigin& origin,
                      Mistakes& mistakes) {
  return SectionResolver(catalog, given, origin, mistakes).resolved();
}

// Resolves a whole recipe, section by section.
class RecipeResolver {
 public:
  RecipeResolver(const Setting& recipe, std::span<const Catalog> catalogs, Mistakes& mistakes)
      : recipe_(recipe), catalogs_(catalogs), mistakes_(mistakes) {
    folder_ = std::filesystem::absolute(recipe.position.file).parent_path();
  }

  Setting resolved() const {
    refuse_unknown_subsections();
    Setting out(Setting::Table{}, "", recipe_.position);
    const Names heads = section_heads();
    refuse_unknown_members(heads);
    for (const auto& catalog : catalogs_) {
      if (catalog.section.empty()) {
        out = resolve_table(catalog, recipe_, {.folder = folder_, .foreign = heads}, mistakes_);
      } else {
        mistakes_.all.collect([&] { place(out, catalog.section, section(catalog)); });
      }
    }
    return out;
  }

 private:
  Names section_heads() const {
    Names heads;
    for (const auto& catalog : catalogs_) {
      const std::string head = catalog.section.substr(0, catalog.section.find('.'));
      if (!head.empty() && !std::ranges::count(heads, head)) heads.push_back(head);
    }
    return heads;
  }

  // Without a catalog for the top level only sections are allowed there.
  void refuse_unknown_members(const Names& heads) const {
    const auto is_top = [](const Catalog& catalog) { return catalog.section.empty(); };
    if (std::ranges::any_of(catalogs_, is_top)) return;
    resolve_table({}, recipe_, {.folder = folder_, .foreign = heads}, mistakes_);
  }

  // For [data.train]: the table "data" may have only the catalogs' sections.
  void refuse_unknown_subsections() const {
    Names heads;
    for (const auto& catalog : catalogs_) {
      const std::size_t dot = catalog.section.find('.');
      const std::string head = dot == std::string::npos ? "" : catalog.section.substr(0, dot);
      if (head.empty() || std::ranges::count(heads, head)) continue;
      heads.push_back(head);
      if (const Setting* parent = recipe_.find(head))
        mistakes_.all.collect([&] { refuse_unknown_below(*parent); });
    }
  }

  void refuse_unknown_below(const Setting& parent) const {
    Names known;
    for (const auto& catalog : catalogs_) {
      if (catalog.section.starts_with(parent.path + '.')) known.push_back(catalog.section);
    }
    if (!parent.is_table()) mistakes_.meant.insert(known.begin(), known.end());
    if (!parent.is_table()) parent.fail("expected the tables [" + joined(known) + "]");
    for (const auto& [name, member] : parent.table())
      if (!std::ranges::count(known, member.path))
        mistakes_.all.collect([&] { fail_unknown_below(parent, name, member, known); });
  }

  [[noreturn]] void fail_unknown_below(const Setting& parent, const std::string& name, const Setting& member,
                                       const Names& known) const {
    if (member.is_table()) {
      const std::string near = nearest_name(member.path, known);
      const bool sure = !near.empty() && similar_name(near, member.path);
      if (sure) mistakes_.meant.insert(near);
      member.fail_key("unknown section; " +
                      (sure ? "did you mean " + near + "?" : "there are " + joined(known)));
    }
    const NameHint hint = mistakes_.hints.for_key({.section = parent.path, .noun = "", .doc = ""}, nullptr,
                                                  parent.path, name, known);
    mistakes_.meant.insert(hint.meant);
    member.fail_key("unknown key" + hint.text);
  }

  Setting section(const Catalog& catalog) const {
    const Setting* given = setting_at(recipe_, catalog.section);
    if (catalog.repeated) return repeated(catalog, given);
    if (given && !given->is_none()) return resolve_table(catalog, *given, {.folder = folder_}, mistakes_);
    if (catalog.may_be_absent()) return Setting({}, catalog.section, recipe_.position);
    const Setting empty(Setting::Table{}, catalog.section, recipe_.position);
    return resolve_table(catalog, empty, {.folder = folder_, .missing = true}, mistakes_);
  }

  Setting repeated(const Catalog& catalog, const Setting* given) const {
    Setting::Array tables;
    if (given && !given->is_array())
      given->fail("expected [[" + catalog.section + "]], once for each " + catalog.noun);
    if (given) {
      for (const auto& table : given->array()) {
        tables.push_back(resolve_table(catalog, table, {.folder = folder_}, mistakes_));
      }
    }
    return Setting(std::move(tables), catalog.section, given ? given->position : recipe_.position);
  }

  void place(Setting& out, const std::string& section, Setting value) const {
    const std::size_t dot = section.find('.');
    if (dot == std::string::npos) {
      out.table().emplace_back(section, std::move(value));
      return;
    }
    const std::string head = section.substr(0, dot);
    if (!out.find(head)) {
      const Setting* written = recipe_.find(head);
      out.table().emplace_back(
          head, Setting(Setting::Table{}, head, written ? written->position : recipe_.position));
    }
    out.find(head)->table().emplace_back(section.substr(dot + 1), std::move(value));
  }

  const Setting& recipe_;
  std::span<const Catalog> catalogs_;
  Mistakes& mistakes_;
  std::filesystem::path folder_;
};

}  // namespace

Setting resolve_section(const Catalog& catalog, const Setting& given, const SectionOrigin& origin) {
  const NameHints hints({&catalog, 1}, {});
  Mistakes mistakes{hints};
  Setting resolved = resolve_table(catalog, given, origin, mistakes);
  mistakes.throw_all();
  return resolved;
}

Setting resolve(const Setting& recipe, std::span<const Catalog> catalogs,
                std::span<const ForeignName> foreign) {
  const NameHints hints(catalogs, foreign);
  Mistakes mistakes{hints};
  Setting resolved = RecipeResolver(recipe, catalogs, mistakes).resolved();
  mistakes.throw_all();
  return resolved;
}

}  // namespace tutti
