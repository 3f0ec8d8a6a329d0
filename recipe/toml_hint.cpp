#include "recipe/toml_hint.h"

#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <sstream>

#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

std::string without_blanks(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r");
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string line_of(const std::string& text, int line) {
  std::istringstream in(text);
  std::string found;
  for (int i = 0; i < line; ++i) std::getline(in, found);
  return without_blanks(found.substr(0, found.find('#')));
}

// A text without quotes, a number with a unit.
bool is_bare_word(const std::string& value) {
  const auto is_of_word = [](unsigned char c) {
    return std::isalnum(c) || c > 0x7f || std::strchr("_-+./~ ", c);
  };
  return !value.empty() && std::ranges::all_of(value, is_of_word);
}

bool is_toml(const std::string& value) try {
  return !toml::parse("value = " + value).empty();
} catch (const toml::parse_error&) {
  return false;
}

std::string hint_for(const std::string& value) {
  const std::string lower = lower_case(value);
  if (value.empty()) return "; there is no value behind the =";
  if (lower == "true" || lower == "yes" || lower == "on") return "; did you mean true?";
  if (lower == "false" || lower == "no" || lower == "off") return "; did you mean false?";
  if (lower == "none" || lower == "null" || lower == "nil") return "; to give no value, leave the key out";
  if (is_toml(value)) return "";
  if (is_bare_word(value)) return "; texts stand in quotes: \"" + shown(value) + '"';
  return "";
}

}  // namespace

std::string toml_hint(const std::string& text, int line) {
  const std::string written = line_of(text, line);
  if (written.empty() || written[0] == '[') return "";
  const std::size_t equals = written.find('=');
  if (equals == written.npos) {
    const bool is_yaml = written.find(": ") != written.npos || written.ends_with(':');
    return is_yaml ? "; expected key = value, not key: value" : "; expected key = value";
  }
  return hint_for(without_blanks(written.substr(equals + 1)));
}

}  // namespace tutti
