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
    default:
      return setting(1.0);
  }
}

}  // namespace

Setting smallest_section(const Catalog& catalog, const std::string& kind) {
  Setting::Table given{{"kind", setting(kind)}};
  for (const Key& key : catalog.keys_of(catalog.find_entry(kind)))
    if (key.required()) given.emplace_back(key.name, any_of(key.type));
  Setting::Table recipe{{catalog.section, setting(std::move(given))}};
  return resolve(setting(std::move(recipe)), std::span(&catalog, 1)).at(catalog.section);
}

}  // namespace tutti
