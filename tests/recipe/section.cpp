#include "tests/recipe/section.h"

#include "recipe/resolve.h"

namespace tutti {
namespace {

Setting setting(Setting::Value value) { return {std::move(value), "", {"test.toml", 1}}; }

Setting smallest_table(const Catalog& catalog, const std::string& kind);

// Something that a key without a default may be.
Setting any_of(const Key& key) {
  if (!key.choices.empty()) return setting(key.choices.front());
  switch (key.type) {
    case KeyType::kInteger:
      return setting(int64_t{2});
    case KeyType::kIntegers:
      return setting(Setting::Array{setting(int64_t{1})});
    case KeyType::kTables: {
      const Setting table = smallest_table(*key.tables, key.tables->kinds()[0]);
      return setting(Setting::Array{table, table});
    }
    case KeyType::kKindOrTable:
      return setting(key.tables->kinds().front());
    case KeyType::kTime:
      return setting(std::string("1ep"));
    case KeyType::kTimes:
      return setting(Setting::Array{setting(std::string("1ep"))});
    case KeyType::kText:
      return setting(std::string("any"));
    default:
      return setting(1.0);
  }
}

Setting smallest_table(const Catalog& catalog, const std::string& kind) {
  Setting::Table given{{"kind", setting(kind)}};
  for (const Key& key : catalog.keys_of(catalog.find_entry(kind)))
    if (key.required()) given.emplace_back(key.name, any_of(key));
  return setting(std::move(given));
}

}  // namespace

Setting smallest_section(const Catalog& catalog, const std::string& kind) {
  if (catalog.section.empty()) return resolve_section(catalog, smallest_table(catalog, kind), {});
  Setting section = smallest_table(catalog, kind);
  if (catalog.repeated) section = setting(Setting::Array{std::move(section)});
  Setting::Table recipe{{catalog.section, std::move(section)}};
  const Setting resolved = resolve(setting(std::move(recipe)), std::span(&catalog, 1)).at(catalog.section);
  return catalog.repeated ? resolved.array().front() : resolved;
}

std::vector<std::string> own_kinds(const Catalog& catalog) {
  std::vector<std::string> kinds = catalog.kinds();
  std::erase(kinds, kPluginKind);
  return kinds;
}

// GCC 12 takes a moved-from variant for uninitialised where settings are built in one expression.
Setting::Value list_value(const std::vector<Setting::Value>& items) {
  Setting::Value value = Setting::Array();
  for (const Setting::Value& item : items) {
    Setting& added = std::get<Setting::Array>(value).emplace_back();
    added.value = item;
    added.path = "section.list";
  }
  return value;
}

Setting section_with(std::vector<std::pair<std::string, Setting::Value>> keys) {
  Setting section;
  section.value = Setting::Table();
  section.path = "section";
  for (auto& [name, value] : keys) {
    auto& [key, added] = section.table().emplace_back();
    key = name;
    added.value = std::move(value);
    added.path = "section." + name;
    added.position = {"test", 1};
  }
  return section;
}

Setting momentum_sgd() {
  return section_with({{"kind", std::string("sgd")},
                       {"lr", 0.1},
                       {"momentum", 0.9},
                       {"dampening", 0.0},
                       {"nesterov", false},
                       {"weight_decay", 0.0}});
}

}  // namespace tutti
