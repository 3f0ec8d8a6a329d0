#include "recipe/overlay.h"

#include <algorithm>

namespace tutti {
namespace {

bool has_override(const Setting& setting) {
  if (!setting.is_table()) return setting.is_override();
  return std::ranges::any_of(setting.table(), [](const auto& member) { return has_override(member.second); });
}

bool differ_in_kind(const Setting& a, const Setting& b) {
  const Setting *kind_a = a.find("kind"), *kind_b = b.find("kind");
  return kind_a && kind_b && kind_a->toml() != kind_b->toml();
}

}  // namespace

void place(Setting& setting, const std::string& path) {
  setting.path = path;
  if (setting.is_table()) {
    for (auto& [name, member] : setting.table()) place(member, path_below(path, name));
  } else if (setting.is_array()) {
    std::size_t index = 0;
    for (Setting& item : std::get<Setting::Array>(setting.value))
      place(item, path_below(path, std::to_string(index++)));
  }
}

void overlay(Setting& base, const Setting& change) {
  if (!base.is_table() || !change.is_table()) {
    if (!base.is_override() || change.is_override()) base = change;
    return;
  }
  if (differ_in_kind(base, change) && !base.find("kind")->is_override())
    std::erase_if(base.table(), [](const auto& member) { return !has_override(member.second); });
  for (const auto& [name, member] : change.table()) {
    Setting* own = base.find(name);
    own ? overlay(*own, member) : void(base.table().emplace_back(name, member));
  }
}

}  // namespace tutti
