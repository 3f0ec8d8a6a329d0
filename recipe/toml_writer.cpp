#include "recipe/toml_reader.h"

namespace tutti {
namespace {

bool is_list_of_tables(const Setting& setting) {
  if (!setting.is_array() || setting.array().empty()) return false;
  for (const auto& item : setting.array()) {
    if (!item.is_table()) return false;
  }
  return true;
}

bool has_own_heading(const Setting& setting) { return setting.is_table() || is_list_of_tables(setting); }

void write_table(std::string& out, const Setting& table, const std::string& path);

void write_heading(std::string& out, const std::string& open, const std::string& path,
                   const std::string& close) {
  if (!out.empty()) out += '\n';
  out += open + path + close + '\n';
}

void write_below(std::string& out, const Setting& member, const std::string& path) {
  if (member.is_array()) {
    for (const auto& table : member.array()) {
      write_heading(out, "[[", path, "]]");
      write_table(out, table, path);
    }
    return;
  }
  bool only_headings = !member.table().empty();
  for (const auto& [name, value] : member.table()) only_headings &= value.is_none() || has_own_heading(value);
  if (!only_headings) write_heading(out, "[", path, "]");
  write_table(out, member, path);
}

// Writes plain keys first, since keys after a heading belong to that heading.
void write_table(std::string& out, const Setting& table, const std::string& path) {
  for (const auto& [name, value] : table.table()) {
    if (!value.is_none() && !has_own_heading(value)) out += toml_key(name) + " = " + value.toml() + '\n';
  }
  for (const auto& [name, value] : table.table()) {
    if (has_own_heading(value))
      write_below(out, value, path.empty() ? toml_key(name) : path + '.' + toml_key(name));
  }
}

}  // namespace

std::string write_recipe(const Setting& recipe) {
  std::string out;
  write_table(out, recipe, "");
  return out;
}

}  // namespace tutti
