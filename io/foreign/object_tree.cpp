#include "io/foreign/object_tree.h"

#include <algorithm>

namespace tutti {

const ObjectTree* ObjectTree::find(std::string_view key) const {
  if (!dict()) return nullptr;
  const auto entry = std::ranges::find_if(*dict(), [&](const auto& one) { return one.first == key; });
  return entry == dict()->end() ? nullptr : &entry->second;
}

const ObjectTree* ObjectTree::at(std::initializer_list<std::string_view> keys) const {
  const ObjectTree* node = this;
  for (const std::string_view key : keys)
    if (node) node = node->find(key);
  return node;
}

std::string ObjectTree::text() const {
  const auto* known = std::get_if<std::string>(&value);
  return known ? *known : "";
}

double ObjectTree::number(double fallback) const {
  if (const auto* known = std::get_if<double>(&value)) return *known;
  return std::holds_alternative<int64_t>(value) ? static_cast<double>(std::get<int64_t>(value)) : fallback;
}

int64_t ObjectTree::integer(int64_t fallback) const {
  const auto* known = std::get_if<int64_t>(&value);
  return known ? *known : fallback;
}

}  // namespace tutti
