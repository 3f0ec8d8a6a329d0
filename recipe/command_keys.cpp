#include "recipe/command_keys.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace tutti {
namespace {

constexpr std::string_view kMore = "...";
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

}  // namespace

bool names_command(const std::string& path) {
  const std::string key = path.substr(path.rfind('.') + 1);
  return (key == "command" || key == "fetch") && path.find(".options.") == std::string::npos;
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

bool is_command_name(const std::string& text) {
  return text == kMore || text.ends_with(' ' + std::string(kMore));
}

Setting with_command_names(Setting recipe) {
  if (recipe.is_text()) {
    if (names_command(recipe.path)) recipe.value = command_name(recipe.text());
  } else if (recipe.is_table()) {
    for (auto& [key, member] : recipe.table()) member = with_command_names(std::move(member));
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
