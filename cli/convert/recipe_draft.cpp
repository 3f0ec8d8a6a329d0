#include "cli/convert/recipe_draft.h"

#include <algorithm>

#include "job/names/foreign_names.h"
#include "job/recipe_catalogs.h"
#include "recipe/dotted_path.h"
#include "recipe/key_check.h"
#include "runtime/error.h"

namespace tutti {
namespace {

const Catalog* catalog_of(const std::string& section) {
  const auto catalogs = recipe_catalogs();
  const auto catalog = std::ranges::find(catalogs, section, &Catalog::section);
  return catalog == catalogs.end() ? nullptr : &*catalog;
}

bool has_name(const Key& key, const std::string& name) {
  return key.name == name || std::ranges::count(key.aliases, name) > 0;
}

std::string without(const std::string& text, const std::string& beginning) {
  return text.starts_with(beginning) ? text.substr(beginning.size()) : text;
}

}  // namespace

std::string why_left_out(const std::string& name) {
  for (const ForeignName& foreign : foreign_names()) {
    if (!foreign.is_called(name)) continue;
    if (!foreign.target.empty())
      return "see " + foreign.target + (foreign.note.empty() ? "" : ": " + foreign.note);
    return without(without(foreign.note, "not carried over: "), "not needed: ");
  }
  return "tutti has no such setting";
}

void RecipeDraft::leave_out(const Setting& given, const std::string& why) {
  left_out_.push_back({given.path, given.position.line, why});
}

void RecipeDraft::leave_out(const Setting& given) { leave_out(given, why_left_out(last_part(given.path))); }

bool RecipeDraft::has_key(const std::string& section, const std::string& key) {
  const Catalog* catalog = catalog_of(section);
  return catalog && std::ranges::any_of(catalog->keys, [&](const Key& own) { return has_name(own, key); });
}

bool RecipeDraft::has_kind(const std::string& section, const std::string& kind) {
  return catalog_of(section)->find_entry(kind) != nullptr;
}

Setting RecipeDraft::recipe() const {
  const auto catalogs = recipe_catalogs();
  const auto place = [&](const auto& member) {
    return std::ranges::find_if(catalogs,
                                [&](const Catalog& catalog) {
                                  return catalog.section == member.first ||
                                         catalog.section.starts_with(member.first + '.');
                                }) -
           catalogs.begin();
  };
  Setting sorted = recipe_;
  std::ranges::stable_sort(sorted.table(), {}, place);
  return sorted;
}

// A section, made with those around it where there is none yet.
Setting* RecipeDraft::table_of(const std::string& section) {
  Setting* at = &recipe_;
  for (std::size_t begin = 0; begin < section.size();) {
    const std::size_t end = std::min(section.find('.', begin), section.size());
    const std::string name = section.substr(begin, end - begin);
    if (!at->find(name))
      at->table().emplace_back(name, Setting(Setting::Table{}, section.substr(0, end), {}));
    at = at->find(name);
    begin = end + 1;
  }
  return at;
}

bool RecipeDraft::has(const std::string& section, const std::string& key) const {
  const Setting* at = setting_at(recipe_, section);
  return at && at->has(key);
}

Setting RecipeDraft::accepted(const Catalog& catalog, const std::string& kind, const std::string& key,
                              const Setting& value) {
  const std::vector<Key> keys = catalog.keys_of(kind.empty() ? nullptr : catalog.find_entry(kind));
  const auto own = std::ranges::find_if(keys, [&](const Key& known) { return has_name(known, key); });
  if (value.is_none()) return {};
  if (own == keys.end()) return leave_out(value), Setting();
  if (own->refused()) return leave_out(value, without(own->refusal, "not carried over: ")), Setting();
  if (own->type == KeyType::kPath && value.is_text() && value.text().find("://") != std::string::npos)
    return leave_out(value, own->words.empty()
                                ? "tutti reads and writes file systems; copy it with a program of yours"
                                : "add it with [remote] command, the program that copies there"),
           Setting();
  const bool is_seconds = own->units == std::vector<std::string>{"sec"} && value.is_integer();
  try {
    Setting good =
        checked(*own, is_seconds ? Setting(value.toml() + "sec", value.path, value.position) : value);
    good.path = path_below(catalog.section, own->name);
    return good;
  } catch (const UserError& error) {
    return leave_out(value, "tutti's " + own->name + " is " + own->expects()), Setting();
  }
}

void RecipeDraft::put(const std::string& section, const std::string& key, const Setting& value) {
  const Setting* there = setting_at(recipe_, section);
  const Setting* kind = there ? there->find("kind") : nullptr;
  Setting good = accepted(*catalog_of(section), kind ? kind->text() : "", key, value);
  if (good.is_none()) return;
  const std::string name = last_part(good.path);
  Setting* table = table_of(section);
  if (Setting* before = table->find(name))
    *before = std::move(good);
  else
    table->table().emplace_back(name, std::move(good));
}

void RecipeDraft::put(const std::string& section, const std::string& key, const Setting::Value& value) {
  put(section, key, Setting(value, path_below(section, key), {}));
}

void RecipeDraft::put_kind(const std::string& section, const std::string& kind, const Setting& options) {
  table_of(section)->table().emplace_back("kind", Setting(kind, section + ".kind", options.position));
  if (!options.is_table()) return;
  for (const auto& [name, value] : options.table())
    if (name != "name") put(section, name, value);
}

void RecipeDraft::add_table(const std::string& section, const std::string& kind, const Setting& options) {
  const Catalog& catalog = *catalog_of(section);
  const Entry* entry = catalog.find_entry(kind);
  if (!entry) return leave_out(options);
  if (!entry->refusal.empty()) return leave_out(options, without(entry->refusal, "Not carried over: "));
  Setting::Table table = {{"kind", Setting(entry->name, section + ".kind", options.position)}};
  if (options.is_table())
    for (const auto& [name, value] : options.table())
      if (Setting good = accepted(catalog, kind, name, value); !good.is_none())
        table.emplace_back(last_part(good.path), std::move(good));
  for (const Key& key : entry->keys) {
    const bool given =
        std::ranges::any_of(table, [&](const auto& member) { return member.first == key.name; });
    if (key.required() && !key.refused() && !given)
      return leave_out(options, "its " + key.name + " is missing (" + key.doc + ')');
  }
  Setting* tables = recipe_.find(section);
  if (!tables) {
    recipe_.table().emplace_back(section, Setting(Setting::Array{}, section, {}));
    tables = &recipe_.table().back().second;
  }
  std::get<Setting::Array>(tables->value).emplace_back(std::move(table), section, options.position);
}

}  // namespace tutti
