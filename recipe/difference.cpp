#include "recipe/difference.h"

#include <algorithm>

namespace tutti {
namespace {

struct Value {
  std::string path;
  std::string toml;
};

// In the order written; lists are values as a whole.
void collect(const Setting& setting, std::vector<Value>& values) {
  if (setting.is_table()) {
    for (const auto& [key, member] : setting.table()) collect(member, values);
  } else if (!setting.is_none()) {
    values.push_back({setting.path, setting.toml()});
  }
}

std::vector<Value> values_of(const Setting& recipe) {
  std::vector<Value> values;
  collect(recipe, values);
  return values;
}

std::string value_at(const std::vector<Value>& values, const std::string& path) {
  const auto found = std::ranges::find(values, path, &Value::path);
  return found == values.end() ? "nothing" : found->toml;
}

}  // namespace

std::vector<std::string> recipe_difference(const Setting& a, const Setting& b) {
  const auto ours = values_of(a), theirs = values_of(b);
  std::vector<std::string> different;
  const auto note = [&different](const std::string& path, const std::string& one, const std::string& other) {
    if (one != other) different.push_back(path + " (" + one + " against " + other + ")");
  };
  for (const auto& [path, toml] : ours) note(path, toml, value_at(theirs, path));
  for (const auto& [path, toml] : theirs)
    if (value_at(ours, path) == "nothing") note(path, "nothing", toml);
  return different;
}

}  // namespace tutti
