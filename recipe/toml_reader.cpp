#include "recipe/toml_reader.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "runtime/printable.h"

namespace tutti {
namespace {

Position position_of(const toml::source_region& source, const std::string& file) {
  return {file, static_cast<int>(source.begin.line)};
}

// Converts TOML++ nodes to settings. All values of an override have the override's position.
class Reader {
 public:
  explicit Reader(std::string file) : file_(std::move(file)) {}

  Setting read(const toml::node& node, const std::string& path) const {
    return Setting(value(node, path), path, position_of(node.source(), file_));
  }

 private:
  Setting::Value value(const toml::node& node, const std::string& path) const {
    if (const auto* flag = node.as_boolean()) return flag->get();
    if (const auto* integer = node.as_integer()) return integer->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* items = node.as_array()) return array(*items, path);
    if (const auto* members = node.as_table()) return table(*members, path);
    throw UserError(position_of(node.source(), file_),
                    path + ": dates and times of day have no meaning in a recipe");
  }

  Setting::Value array(const toml::array& items, const std::string& path) const {
    Setting::Array out;
    for (const auto& item : items) out.push_back(read(item, path_below(path, std::to_string(out.size()))));
    return out;
  }

  // Sorts members by position, since toml::table sorts by name. A section that only its subsections open has
  // no position and takes that of its first member.
  Setting::Value table(const toml::table& members, const std::string& path) const {
    Setting::Table out;
    for (const auto& [key, node] : members) {
      const std::string name(key.str());
      out.emplace_back(name, read(node, path_below(path, name)));
    }
    std::ranges::stable_sort(out, {}, [&](const auto& member) { return place(members, member.first); });
    return out;
  }

  static std::pair<uint32_t, uint32_t> place(const toml::table& members, const std::string& key) {
    const auto begin = members.find(key)->first.source().begin;
    return {begin.line, begin.column};
  }

  std::string file_;
};

constexpr int kMaxKeyDepth = 64;  // TOML++ and functions over recipes are recursive

bool is_of_key(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '"' || c == '\'';
}

// Tracks the depth of keys (a.b.c, with blanks around the dots) while reading a text by characters.
class KeyDepth {
 public:
  // The number of dots, up to this character, in the current key.
  int dots_at(char c) {
    if (quote_ != 0 && c != quote_ && c != '\n') return dots_;
    quote_ = quote_ == 0 && (c == '"' || c == '\'') ? c : 0;
    if (c == ' ' || c == '\t') {
      blank_ = true;
      return dots_;
    }
    const bool continues = c == '.' ? is_of_key(last_) : is_of_key(c) && (last_ == '.' || !blank_);
    dots_ = continues ? dots_ + (c == '.') : 0;
    last_ = c;
    blank_ = false;
    return dots_;
  }

 private:
  int dots_ = 0;
  char last_ = '\n';    // the last character that is not blank
  bool blank_ = false;  // a blank follows `last_`
  char quote_ = 0;      // the open quote, or 0
};

void refuse_deep_keys(const std::string& toml, Position position) {
  KeyDepth depth;
  int line = 1;
  for (const char c : toml) {
    if (depth.dots_at(c) > kMaxKeyDepth) {
      if (position.file != kOverrideFile) position.line = line;
      throw UserError(position, "a key is nested too deeply");
    }
    line += c == '\n';
  }
}

std::string parse_error_text(const toml::parse_error& error) {
  return "this is not TOML: " + std::string(error.description());
}

// The value of an override: a TOML value, or the text itself if it is not one TOML value.
Setting::Value override_value(const std::string& text, const std::string& path) {
  try {
    const toml::table parsed = toml::parse("value = " + text);
    const toml::node* node = parsed.get("value");
    if (parsed.size() == 1 && node && !node->is_date() && !node->is_time() && !node->is_date_time()) {
      return Reader(kOverrideFile).read(*node, path).value;
    }
  } catch (const toml::parse_error&) {
  }
  return text;
}

void place_at_override(Setting& setting) {
  setting.position = {kOverrideFile, 0};
  if (setting.is_array()) {
    for (auto& item : std::get<Setting::Array>(setting.value)) place_at_override(item);
  } else if (setting.is_table()) {
    for (auto& [name, member] : setting.table()) place_at_override(member);
  }
}

// The member `name` of a table (added if absent), or the list's table with index `name`, or null.
Setting* step_into(Setting& parent, const std::string& name) {
  if (parent.is_table()) {
    if (Setting* member = parent.find(name)) return member;
    parent.table().emplace_back(name,
                                Setting(Setting::Table{}, path_below(parent.path, name), {kOverrideFile, 0}));
    return &parent.table().back().second;
  }
  if (!parent.is_array()) return nullptr;
  auto& items = std::get<Setting::Array>(parent.value);
  std::size_t index = 0;
  const char* const end = name.data() + name.size();
  const bool is_index = std::from_chars(name.data(), end, index).ptr == end;
  return is_index && index < items.size() ? &items[index] : nullptr;
}

void apply_override(Setting& recipe, const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UserError({kOverrideFile, 0}, shown(text) + ": expected key=value, like train.max_duration=20ep");
  }
  const std::string path = text.substr(0, equals);
  refuse_deep_keys(text, {kOverrideFile, 0});
  Setting* at = &recipe;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    Setting* next = end > begin ? step_into(*at, path.substr(begin, end - begin)) : nullptr;
    if (!next) throw UserError({kOverrideFile, 0}, shown(text) + ": there is no " + shown(path) + " to set");
    at = next;
    begin = end + 1;
  }
  at->value = override_value(text.substr(equals + 1), path);
  place_at_override(*at);
}

// Names of the recipes in the folder, for a suggestion.
std::vector<std::string> recipes_beside(const std::filesystem::path& path) {
  std::vector<std::string> names;
  std::error_code error;
  const auto folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  for (const auto& file : std::filesystem::directory_iterator(folder, error)) {
    if (file.path().extension() == ".toml") names.push_back(file.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::string contents(const std::string& path) {
  const std::filesystem::path file(path);
  if (std::filesystem::is_directory(file)) {
    throw UserError({path, 0}, "this is a folder; expected a recipe, a TOML file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::string message = std::string("cannot read the recipe: ") + std::strerror(errno);
    const std::string near = nearest_name(file.filename().string(), recipes_beside(file));
    if (!near.empty() && near != file.filename()) message += "; did you mean " + near + "?";
    throw UserError({path, 0}, message);
  }
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Setting parse_recipe(const std::string& toml, const std::string& file,
                     std::span<const std::string> overrides) {
  Setting recipe;
  refuse_deep_keys(toml, {file, 0});
  try {
    recipe = Reader(file).read(toml::parse(toml), "");
  } catch (const toml::parse_error& error) {
    throw UserError(position_of(error.source(), file), parse_error_text(error));
  }
  recipe.position = {file, 0};
  for (const auto& text : overrides) apply_override(recipe, text);
  return recipe;
}

Setting read_recipe(const std::string& path, std::span<const std::string> overrides) {
  return parse_recipe(contents(path), path, overrides);
}

}  // namespace tutti
