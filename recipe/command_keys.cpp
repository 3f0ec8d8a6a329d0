#include "recipe/command_keys.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "runtime/nearest_name.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::string_view kMore = "...";
constexpr const char* kKeys[] = {"command", "fetch"};
constexpr const char* kSimilarKeys[] = {"cmd", "shell"};  // that others have for these
constexpr std::string_view kBlanks = " \t\r\n";

bool is_of_variable(char c) { return c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

bool is_of_program(char c) {
  return is_of_variable(c) || std::string_view("./~+-").find(c) != std::string_view::npos;
}

// NAME=value. A quoted value may have more words, of which one would count as the program.
bool sets_plain_variable(std::string_view word) {
  const std::size_t equals = word.find('=');
  return equals != std::string_view::npos && equals > 0 &&
         std::ranges::all_of(word.substr(0, equals), is_of_variable) &&
         word.find_first_of("'\"\\`$(") == std::string_view::npos;
}

bool may_be_in_key(char c) { return std::string_view("=[]{},#\n").find(c) == std::string_view::npos; }

// What stands before an equals sign.
std::string key_before(std::string_view text) {
  std::size_t begin = text.size();
  while (begin > 0 && may_be_in_key(text[begin - 1])) --begin;
  return std::string(text.substr(begin));
}

// The closing quote of a text that opens at `at`.
std::size_t end_of_text(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == text[at]) return i;
    if (text[i] == '\\' && text[at] == '"') ++i;
  }
  return text.size();
}

// The end of the last line of a value, which may have several.
std::size_t end_of_value(std::string_view text) {
  std::size_t at = std::min(text.find_first_not_of(" \t"), text.size());
  for (const char* quotes : {"\"\"\"", "'''"})
    if (text.substr(at).starts_with(quotes)) at = std::min(text.find(quotes, at + 3), text.size());
  if (text.substr(at).starts_with('['))
    for (int depth = 0; at < text.size() && (depth > 0 || text[at] != '\n'); ++at) {
      if (text[at] == '"' || text[at] == '\'') at = end_of_text(text, at);
      if (at < text.size()) depth += (text[at] == '[') - (text[at] == ']');
    }
  return std::min(text.find('\n', at), text.size());
}

}  // namespace

bool names_command(const std::string& path) {
  if (path.find(".options.") != std::string::npos) return false;
  const std::size_t end = path.find_last_not_of(".0123456789") + 1;
  const std::string key = lower_case(path.substr(0, end).substr(path.substr(0, end).rfind('.') + 1));
  const auto is_in_key = [&](const char* one) { return key.find(one) != std::string::npos; };
  return std::ranges::any_of(kKeys,
                             [&](const char* one) { return is_in_key(one) || similar_name(key, one); }) ||
         std::ranges::any_of(kSimilarKeys, is_in_key);
}

bool mentions_command(const std::string& text) {
  const std::string lower = lower_case(text);
  const auto is_there = [&](const char* one) { return lower.find(one) != std::string::npos; };
  return std::ranges::any_of(kKeys, is_there) || std::ranges::any_of(kSimilarKeys, is_there);
}

std::string without_commands(std::string_view toml) {
  std::string shown;
  while (!toml.empty()) {
    const std::size_t equals = toml.find('=');
    const std::string_view before = toml.substr(0, equals);
    shown += before;
    if (equals == toml.npos) break;
    toml.remove_prefix(before.size() + 1);
    shown += '=';
    const std::string_view value = toml.substr(0, end_of_value(toml));
    if (value.find_first_not_of(kBlanks) == value.npos || !names_command(key_before(before))) continue;
    shown += value.substr(0, value.find_first_not_of(" \t"));
    shown += kMore;
    shown.append(static_cast<std::size_t>(std::ranges::count(value, '\n')), '\n');
    toml.remove_prefix(value.size());
  }
  return shown;
}

std::string command_name(const std::string& command) {
  std::string_view rest = command, word;
  bool sets = false;
  do {
    rest.remove_prefix(std::min(rest.find_first_not_of(kBlanks), rest.size()));
    word = rest.substr(0, rest.find_first_of(kBlanks));
    rest.remove_prefix(word.size());
  } while (sets_plain_variable(word) && (sets = true));
  if (word.empty() || word == kMore || !std::ranges::all_of(word, is_of_program)) return std::string(kMore);
  const bool is_all = !sets && rest.find_first_not_of(kBlanks) == std::string_view::npos;
  return std::string(word) + (is_all ? "" : ' ' + std::string(kMore));
}

bool is_command_name(const std::string& text) { return text.ends_with(kMore) && text == command_name(text); }

Setting with_command_names(Setting recipe) {
  if (recipe.is_text()) {
    const bool is_item = recipe.path.find_last_of("0123456789") + 1 == recipe.path.size();  // of a list
    if (names_command(recipe.path)) recipe.value = is_item ? std::string(kMore) : command_name(recipe.text());
  } else if (recipe.is_table()) {
    for (auto& [key, member] : recipe.table()) member = with_command_names(std::move(member));
  } else if (recipe.is_array() && names_command(recipe.path)) {
    recipe.value = std::string(kMore);
  } else if (recipe.is_array()) {
    for (Setting& item : std::get<Setting::Array>(recipe.value)) item = with_command_names(std::move(item));
  }
  return recipe;
}

std::string with_command_name(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  const bool joined = argument.starts_with("--set=");
  const std::size_t end = joined ? argument.find('=', equals + 1) : equals;
  if (end == std::string::npos) return argument;
  const std::string key = argument.substr(0, end), value = argument.substr(end + 1);
  if (names_command(key)) return key + '=' + command_name(value);
  const bool has_command =
      value.find("command") != std::string::npos || value.find("fetch") != std::string::npos;
  return has_command ? key + '=' + std::string(kMore) : argument;
}

void require_whole_command(const Setting& command) {
  if (is_command_name(command.text()))
    command.fail(
        "of a command, which may have secrets in it, a run keeps its first word; give the whole: --set " +
        command.path + "='...'");
}

}  // namespace tutti
