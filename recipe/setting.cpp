#include "recipe/setting.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "recipe/command_keys.h"
#include "runtime/lack_of_memory.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

// Control characters are escaped, also those that TOML allows: a terminal would obey them.
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const Control control = control_at(text, i);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (control.bytes > 0) {
      out += formatted("\\u%04X", control.code);
      i += control.bytes - 1;
    } else {
      out += c;
    }
  }
  return out + '"';
}

// The shortest text that parses to the same bits, with a "." or "e" unlike an integer.
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  std::string text(buffer.data(), end);
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

template <class Items, class ItemText>
std::string enclosed(const Items& items, const char* open, const char* close, ItemText item_text) {
  std::string out;
  for (const auto& item : items) {
    if (const std::string text = item_text(item); !text.empty()) out += (out.empty() ? "" : ", ") + text;
  }
  return open + out + close;
}

struct AsToml {
  std::string operator()(std::monostate) const { return ""; }
  std::string operator()(bool flag) const { return flag ? "true" : "false"; }
  std::string operator()(int64_t integer) const { return std::to_string(integer); }
  std::string operator()(double number) const { return number_text(number); }
  std::string operator()(const std::string& text) const { return quoted(text); }
  std::string operator()(const Setting::Array& items) const {
    return enclosed(items, "[", "]", [](const Setting& item) { return item.toml(); });
  }
  std::string operator()(const Setting::Table& members) const {
    return enclosed(members, "{", "}", [](const auto& member) {
      return member.second.is_none() ? "" : toml_key(member.first) + " = " + member.second.toml();
    });
  }
};

template <class T>
const T& value_as(const Setting& setting, const char* expected) {
  const T* value = std::get_if<T>(&setting.value);
  if (!value) setting.fail(std::string("expected ") + expected);
  return *value;
}

template <class T, class Read>
std::vector<T> items_as(const Setting& setting, const char* expected, Read read) {
  std::vector<T> out;
  for (const auto& item : value_as<Setting::Array>(setting, expected)) out.push_back(read(item));
  return out;
}

struct Value {
  std::string path;
  std::string toml;
};

// Collects values in the order written; a list is one value.
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
  const auto value = std::ranges::find(values, path, &Value::path);
  return value == values.end() ? "nothing" : value->toml;
}

template <class Text>
std::vector<std::string> differences(const Setting& a, const Setting& b, Text text) {
  const auto ours = values_of(with_command_names(a)), theirs = values_of(with_command_names(b));
  std::vector<std::string> different;
  const auto note = [&](const std::string& path, const std::string& before, const std::string& after) {
    if (before != after) different.push_back(text(path, before, after));
  };
  for (const auto& [path, toml] : ours) note(path, toml, value_at(theirs, path));
  for (const auto& [path, toml] : theirs)
    if (value_at(ours, path) == "nothing") note(path, "nothing", toml);
  return different;
}

}  // namespace

std::string toml_key(const std::string& key) {
  const bool bare = !key.empty() && key.find_first_not_of(
                                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                        "0123456789_-") == std::string::npos;
  return bare ? key : quoted(key);
}

bool Setting::boolean() const { return value_as<bool>(*this, "true or false"); }

int64_t Setting::integer() const { return value_as<int64_t>(*this, "an integer"); }

double Setting::number() const {
  return is_integer() ? static_cast<double>(integer()) : value_as<double>(*this, "a number");
}

const std::string& Setting::text() const { return value_as<std::string>(*this, "a text"); }

const Setting::Array& Setting::array() const { return value_as<Array>(*this, "a list"); }

const Setting::Table& Setting::table() const { return value_as<Table>(*this, "a table"); }

Setting::Table& Setting::table() { return const_cast<Table&>(std::as_const(*this).table()); }

std::vector<int64_t> Setting::integers() const {
  return items_as<int64_t>(*this, "a list of integers", [](const Setting& item) { return item.integer(); });
}

std::vector<double> Setting::numbers() const {
  return items_as<double>(*this, "a list of numbers", [](const Setting& item) { return item.number(); });
}

std::vector<std::string> Setting::texts() const {
  return items_as<std::string>(*this, "a list of texts", [](const Setting& item) { return item.text(); });
}

const Setting* Setting::find(const std::string& key) const {
  for (const auto& [name, member] : table()) {
    if (name == key) return &member;
  }
  return nullptr;
}

Setting* Setting::find(const std::string& key) {
  return const_cast<Setting*>(std::as_const(*this).find(key));
}

const Setting& Setting::at(const std::string& key) const {
  if (const Setting* member = find(key)) return *member;
  std::string keys;
  for (const auto& [name, member] : table()) keys += (keys.empty() ? "; it has " : ", ") + toml_key(name);
  fail("it lacks the key " + toml_key(key) + keys);
}

bool Setting::has(const std::string& key) const {
  const Setting* member = find(key);
  return member && !member->is_none();
}

namespace {

std::string told(const Setting& setting, const std::string& message) {
  if (setting.is_table()) return setting.path.empty() ? message : '[' + shown(setting.path) + "]: " + message;
  const std::string value =
      setting.written.empty() ? with_command_names(setting).toml() : quoted(setting.written);
  return shown(setting.path_as_written()) + (setting.is_none() ? "" : " = " + shown(value)) + ": " + message;
}

}  // namespace

void Setting::fail(const std::string& message) const { throw UserError(position, told(*this, message)); }

void Setting::fail_key(const std::string& message) const {
  throw UserError(position.key_position(), told(*this, message));
}

void Setting::fail(const std::exception& cause) const {
  const auto* known = dynamic_cast<const RunError*>(&cause);
  if (known && known->message().starts_with(told(*this, ""))) throw UserError(position, known->message());
  const bool names_own = known && is_text() && known->position().file == with_command_names(*this).text();
  const std::string message = !known      ? error_message(cause)
                              : names_own ? known->message()
                                          : known->headline();
  if (const EndKind kind = end_by(cause).kind; lacks_memory(kind))
    throw RunError(kind, position, told(*this, message));
  fail(message);
}

std::string Setting::toml() const { return std::visit(AsToml{}, value); }

Setting table_of_kind(const Setting& name) {
  Setting table;
  table.value = Setting::Table();
  table.path = name.path;
  table.position = name.position;
  table.table().emplace_back("kind", name);
  return table;
}

std::string path_below(const std::string& section, const std::string& key) {
  return section.empty() ? key : section + '.' + key;
}

std::vector<std::string> recipe_difference(const Setting& a, const Setting& b) {
  return differences(a, b, [](const std::string& path, const std::string& before, const std::string& after) {
    return path + " (" + before + " against " + after + ")";
  });
}

std::vector<std::string> recipe_changes(const Setting& now, const Setting& then) {
  return differences(now, then,
                     [](const std::string& path, const std::string& before, const std::string& after) {
                       return path + " = " + before + " (was " + after + ")";
                     });
}

}  // namespace tutti
