#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/error.h"

namespace tutti {

class PluginMaker;

// The file name in the position of a value from `--set`.
inline constexpr const char* kOverrideFile = "--set";

// A key in TOML: bare if possible, else quoted.
std::string toml_key(const std::string& key);

// A value of a recipe, with its dotted path and position. Reading a value as another type throws a UserError
// with file:line, path and value.
class Setting {
 public:
  using Array = std::vector<Setting>;
  using Table = std::vector<std::pair<std::string, Setting>>;  // in the order written
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string, Array, Table>;

  Setting() = default;
  Setting(Value value, std::string path, Position position)
      : value(std::move(value)), path(std::move(path)), position(std::move(position)) {}

  bool is_none() const { return std::holds_alternative<std::monostate>(value); }
  bool is_text() const { return std::holds_alternative<std::string>(value); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value); }
  bool is_array() const { return std::holds_alternative<Array>(value); }
  bool is_table() const { return std::holds_alternative<Table>(value); }

  bool boolean() const;
  int64_t integer() const;
  double number() const;  // integers too
  const std::string& text() const;
  const Array& array() const;
  const Table& table() const;
  Table& table();
  std::vector<int64_t> integers() const;
  std::vector<double> numbers() const;
  std::vector<std::string> texts() const;

  // A table's member. If absent, `find` returns null; `at` throws UserError with the keys that there are.
  const Setting* find(const std::string& key) const;
  Setting* find(const std::string& key);
  const Setting& at(const std::string& key) const;
  bool has(const std::string& key) const;  // present and not none

  // Throws UserError "file:line: path = value: message", for a table "file:line: [path]: message", with the
  // line and a caret below the value; `fail_key`: below the key.
  [[noreturn]] void fail(const std::string& message) const;
  [[noreturn]] void fail_key(const std::string& message) const;
  // The same with the message of another error; a path that this value has is not said twice.
  [[noreturn]] void fail(const std::exception& cause) const;
  // True if the value is from `--set`, which overrides the file.
  bool is_override() const { return position.file == kOverrideFile; }
  std::string toml() const;  // the value as TOML on one line
  const std::string& as_written() const { return written.empty() ? text() : written; }
  const std::string& path_as_written() const { return written_path.empty() ? path : written_path; }

  Value value;
  std::string path;
  Position position;
  std::string written = "";       // a path as written, where `value` is the meaning; else ""
  std::string written_path = "";  // with the user's other name of the key; else ""
  // Of kind = "plugin", once the library of [plugins] is loaded: see recipe/plugin_maker.h. Else null.
  std::shared_ptr<const PluginMaker> maker = nullptr;
};

// The table of a kind of this name, without other keys.
Setting table_of_kind(const Setting& name);

// "optimizer.lr"; at the top level only the key.
std::string path_below(const std::string& section, const std::string& key);

// All keys with different values in the two recipes: "optimizer.lr (0.1 against 0.05)". An absent value is
// "nothing".
std::vector<std::string> recipe_difference(const Setting& a, const Setting& b);
// The same for a recipe and its earlier form: "optimizer.lr = 0.05 (was 0.1)".
std::vector<std::string> recipe_changes(const Setting& now, const Setting& then);

}  // namespace tutti
