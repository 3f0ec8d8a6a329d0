#include "recipe/toml_reader.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string_view>

#include "recipe/command_keys.h"
#include "recipe/hints.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"
#include "runtime/regular_file.h"
#include "runtime/text.h"
#include "runtime/user_errors.h"

namespace tutti {
namespace {

using Source = std::shared_ptr<const std::string>;

int column(uint32_t given) { return static_cast<int>(given); }

// A region of several lines is marked to the end of its first.
Columns columns_of(const toml::source_region& region) {
  constexpr int kToTheEnd = 1 << 20;
  const bool one_line = region.begin.line == region.end.line;
  return {column(region.begin.column),
          one_line ? column(region.end.column) - column(region.begin.column) : kToTheEnd};
}

// Converts TOML++ nodes to settings.
class Reader {
 public:
  Reader(std::string file, Source source) : file_(std::move(file)), source_(std::move(source)) {}

  Setting read(const toml::node& node, const std::string& path, const toml::key* key = nullptr) const {
    return Setting(value(node, path), path, position(node, key));
  }

 private:
  // A [heading] is marked, not all that is below.
  Position position(const toml::node& node, const toml::key* key) const {
    Position at{file_, static_cast<int>(node.source().begin.line), columns_of(node.source()), {}, source_};
    if (key) at.key_columns = columns_of(key->source());
    const auto* table = node.as_table();
    const bool heading = table && !table->is_inline();
    const bool headings = node.is_array_of_tables() && !node.as_array()->empty() &&
                          !node.as_array()->front().as_table()->is_inline();
    if (key && (heading || headings)) at.columns = at.key_columns;
    return at;
  }

  Setting::Value value(const toml::node& node, const std::string& path) const {
    if (const auto* flag = node.as_boolean()) return flag->get();
    if (const auto* integer = node.as_integer()) return integer->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* text = node.as_string()) return text->get();
    if (const auto* items = node.as_array()) return array(*items, path);
    if (const auto* members = node.as_table()) return table(*members, path);
    throw UserError(position(node, nullptr), path + ": dates and times of day have no meaning in a recipe");
  }

  Setting::Value array(const toml::array& items, const std::string& path) const {
    Setting::Array out;
    for (const auto& item : items) out.push_back(read(item, path_below(path, std::to_string(out.size()))));
    return out;
  }

  // Sorts members by position, since toml::table sorts by name. A section that only its subsections open has
  // no position and gets that of its first member.
  Setting::Value table(const toml::table& members, const std::string& path) const {
    Setting::Table out;
    for (const auto& [key, node] : members) {
      const std::string name(key.str());
      out.emplace_back(name, read(node, path_below(path, name), &key));
    }
    std::ranges::stable_sort(out, {}, [&](const auto& member) { return place(members, member.first); });
    return out;
  }

  static std::pair<uint32_t, uint32_t> place(const toml::table& members, const std::string& key) {
    const auto begin = members.find(key)->first.source().begin;
    return {begin.line, begin.column};
  }

  std::string file_;
  Source source_;
};

constexpr int kMaxKeyDepth = 64;  // TOML++ and functions over recipes are recursive

bool is_in_key(char c) {
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
    const bool continues = c == '.' ? is_in_key(last_) : is_in_key(c) && (last_ == '.' || !blank_);
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

// False where a command may stand in the line, though not in TOML's way, so that it was not taken out.
bool may_show(const std::string& source, int line) {
  std::istringstream lines(source);
  std::string text;
  for (int i = 0; i < line && std::getline(lines, text); ++i) {
  }
  return !mentions_command(source) || text.find("...") != text.npos;
}

UserError toml_error(const toml::parse_error& error, const std::string& file, const Source& source) {
  const auto& at = error.source().begin;
  const int line = static_cast<int>(at.line);
  return UserError({file, line, {column(at.column)}, {}, may_show(*source, line) ? source : nullptr},
                   "this is not TOML: " + std::string(error.description()) + toml_hint(*source, line));
}

// An argument of --set: key=value.
class Override {
 public:
  explicit Override(const std::string& text)
      : text_(text), source_(std::make_shared<const std::string>(kBefore + without_commands(text))) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      fail(0, text.size(), told() + ": expected key=value, like train.max_duration=20ep");
    path_ = text.substr(0, equals);
    value_ = text.substr(equals + 1);
  }

  void apply(Setting& recipe) const {
    refuse_deep_keys(text_, {kOverrideFile, 0});
    Setting* at = &recipe;
    std::size_t last = 0;
    for (std::size_t begin = 0; begin <= path_.size();) {
      const std::size_t end = std::min(path_.find('.', begin), path_.size());
      Setting* next = end > begin ? step_into(*at, begin, end) : nullptr;
      if (!next) fail(begin, end, told() + ": there is no " + shown(path_) + " to set");
      at = next;
      last = begin;
      begin = end + 1;
    }
    at->value = value();
    place(*at, position(last, path_.size()));
  }

 private:
  static constexpr const char* kBefore = "--set ";

  std::string told() const { return shown(without_commands(text_)); }

  // Bytes of the text, as columns of what is shown.
  Columns columns(std::size_t begin, std::size_t end) const {
    const auto characters = [&](std::size_t bytes) {
      int count = 0;
      for (const char c : as_utf8(text_.substr(0, bytes)))
        count += (static_cast<unsigned char>(c) & 0xc0) != 0x80;
      return count;
    };
    return {1 + static_cast<int>(std::string_view(kBefore).size()) + characters(begin),
            characters(end) - characters(begin)};
  }

  // The places of the value, and of its key in the path.
  Position position(std::size_t key_begin, std::size_t key_end) const {
    return {kOverrideFile, 0, columns(std::min(path_.size() + 1, text_.size()), text_.size()),
            columns(key_begin, key_end), source_};
  }

  [[noreturn]] void fail(std::size_t begin, std::size_t end, const std::string& message) const {
    throw UserError({kOverrideFile, 0, columns(begin, end), {}, source_}, message);
  }

  // The value: TOML, or the text itself if it is not one TOML value.
  Setting::Value value() const {
    try {
      const toml::table parsed = toml::parse("value = " + value_);
      const toml::node* node = parsed.get("value");
      if (parsed.size() == 1 && node && !node->is_date() && !node->is_time() && !node->is_date_time())
        return Reader(kOverrideFile, nullptr).read(*node, path_).value;
    } catch (const toml::parse_error&) {
    }
    return value_;
  }

  // All of the value has the position of the whole.
  static void place(Setting& setting, const Position& position) {
    setting.position = position;
    if (setting.is_array()) {
      for (auto& item : std::get<Setting::Array>(setting.value)) place(item, position);
    } else if (setting.is_table()) {
      for (auto& [name, member] : setting.table()) place(member, position);
    }
  }

  // The member of a table that this part of the path names (added if absent), or the list's table with this
  // index, or null.
  Setting* step_into(Setting& parent, std::size_t begin, std::size_t end) const {
    const std::string name = path_.substr(begin, end - begin);
    if (parent.is_table()) {
      if (Setting* member = parent.find(name)) return member;
      Position at = position(begin, end);
      at.columns = at.key_columns;
      parent.table().emplace_back(name, Setting(Setting::Table{}, path_below(parent.path, name), at));
      return &parent.table().back().second;
    }
    if (!parent.is_array()) return nullptr;
    auto& items = std::get<Setting::Array>(parent.value);
    std::size_t index = 0;
    const char* const last = name.data() + name.size();
    const bool is_index = std::from_chars(name.data(), last, index).ptr == last;
    return is_index && index < items.size() ? &items[index] : nullptr;
  }

  std::string text_, path_, value_;
  Source source_;
};

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
  const RegularFile opened(path, kMostTextBytes);
  if (opened.problem().empty()) return opened.text();
  const std::filesystem::path file(path);
  std::error_code unknown;
  if (std::filesystem::is_directory(file, unknown))
    throw UserError({path, 0}, "this is a folder; expected a recipe, a TOML file");
  std::string message = "cannot read the recipe: " + opened.problem();
  const std::string near = nearest_name(file.filename().string(), recipes_beside(file));
  if (!near.empty() && near != file.filename()) message += "; did you mean " + near + "?";
  throw UserError({path, 0}, message);
}

}  // namespace

Setting parse_recipe(const std::string& toml, const std::string& file,
                     std::span<const std::string> overrides) {
  Setting recipe;
  refuse_deep_keys(toml, {file, 0});
  const auto source = std::make_shared<const std::string>(without_commands(toml));  // for errors
  try {
    recipe = Reader(file, source).read(toml::parse(toml), "");
  } catch (const toml::parse_error& error) {
    throw toml_error(error, file, source);
  }
  recipe.position = {file, 0};
  MistakeCollector mistakes;
  for (const auto& text : overrides) mistakes.collect([&] { Override(text).apply(recipe); });
  mistakes.throw_all();
  return recipe;
}

Setting read_recipe(const std::string& path, std::span<const std::string> overrides) {
  return parse_recipe(contents(path), path, overrides);
}

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
