#include "recipe/placeholders.h"

#include <algorithm>
#include <cctype>

#include "runtime/error.h"
#include "runtime/nearest_name.h"
#include "runtime/printable.h"

namespace tutti {

void replace_all(std::string& text, const std::string& field, const std::string& value) {
  for (auto at = text.find(field); at != std::string::npos; at = text.find(field, at + value.size()))
    text.replace(at, field.size(), value);
}

std::vector<PatternPart> parts_of_pattern(const std::string& pattern) {
  std::vector<PatternPart> parts;
  std::size_t begin = 0;
  for (std::size_t open; (open = pattern.find('{', begin)) != std::string::npos;) {
    const std::size_t close = pattern.find('}', open);
    if (close == std::string::npos) throw UserError("a { has no }");
    parts.push_back({pattern.substr(begin, open - begin), pattern.substr(open + 1, close - open - 1)});
    begin = close + 1;
  }
  parts.push_back({pattern.substr(begin)});
  return parts;
}

void refuse_placeholder(const std::string& placeholder, const std::vector<std::string>& known) {
  const auto braced = [](const std::string& name) { return '{' + shown(name) + '}'; };
  const std::string near = nearest_name(placeholder, known);
  std::string all;
  for (const auto& name : known) all += (all.empty() ? "" : ", ") + braced(name);
  throw UserError("unknown placeholder " + braced(placeholder) +
                  (near.empty() ? "; there are " + all : "; did you mean " + braced(near) + "?"));
}

bool is_plain_word(const std::string& text) {
  return !text.empty() && text.find_first_not_of(
                              "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                              "0123456789._+/@=-") == std::string::npos;
}

bool is_remote_path(const std::string& path) {
  const std::size_t at = path.find("://");
  return at != std::string::npos && at > 0 &&
         std::all_of(path.begin(), path.begin() + at,
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '_' || c == '-'; });
}

void require_remote_path(const Setting& key, const std::string& path) {
  const std::string names = path.substr(path.find("://") + 3);
  if (names.empty() || names.front() == '/' || !is_plain_word(names) ||
      ("/" + names + "/").find("/../") != names.npos)
    key.fail("expected a bucket and folders of letters, digits, and . _ - + @ = alone");
}

void require_placeholders(const Setting& text, const std::vector<std::string>& known) try {
  for (const auto& [before, placeholder] : parts_of_pattern(text.text()))
    if (placeholder && std::ranges::count(known, *placeholder) == 0) refuse_placeholder(*placeholder, known);
} catch (const UserError& error) {
  text.fail(error);
}

}  // namespace tutti
