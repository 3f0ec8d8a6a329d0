#include "tests/recipes/section.h"

#include "runtime/resolve.h"

namespace tutti {
namespace {

Setting setting(Setting::Value value) { return {std::move(value), "", {"test.toml", 1}}; }

// Something that a key without a default may be.
Setting any_of(KeyType type) {
  switch (type) {
    case KeyType::kTime:
      return setting(std::string("1ep"));
    case KeyType::kTimes:
      return setting(Setting::Array{setting(std::string("1ep"))});
    case KeyType::kInteger:
      return setting(int64_t{1});
    case KeyType::kText:
      return setting(std::string("any"));
    default:
      return setting(1.0);
  }
}

}  // namespace

Setting smallest_section(const Catalog& catalog, const std::string& kind) {
  Setting::Table given{{"kind", setting(kind)}};
  for (const Key& key : catalog.keys_of(catalog.find_entry(kind)))
    if (key.required()) given.emplace_back(key.name, any_of(key.type));
  Setting section = setting(std::move(given));
  if (catalog.repeated) section = setting(Setting::Array{std::move(section)});
  Setting::Table recipe{{catalog.section, std::move(section)}};
  const Setting resolved = resolve(setting(std::move(recipe)), std::span(&catalog, 1)).at(catalog.section);
  return catalog.repeated ? resolved.array().front() : resolved;
}

}  // namespace tutti
