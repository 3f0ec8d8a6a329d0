#pragma once

#include <optional>
#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// Replaces every `field` in the text by `value`: "{rank}" by "3".
void replace_all(std::string& text, const std::string& field, const std::string& value);

// A placeholder and the text before; the last part of a pattern has no placeholder.
struct PatternPart {
  std::string text;
  std::optional<std::string> placeholder = {};
};

// Splits a pattern at its placeholders, "ep{epoch}-ba{batch}". Throws UserError for a { without }.
std::vector<PatternPart> parts_of_pattern(const std::string& pattern);

// Throws UserError for an unknown placeholder; suggests the nearest of `known`.
[[noreturn]] void refuse_placeholder(const std::string& placeholder, const std::vector<std::string>& known);

// True for a text without special meaning anywhere in a command line: letters, digits and . _ + / @ = -.
// Whoever wrote a name in a data set is not to write a program.
bool is_plain_word(const std::string& text);
inline constexpr const char* kPlainCharacters = "only letters, digits and . _ + / @ = - are taken";

// True for the path of a remote store: SCHEME://...
bool is_remote_path(const std::string& path);

// Throws UserError of `key` unless the remote path has a bucket and plain words alone (is_plain_word).
void require_remote_path(const Setting& key, const std::string& path);

// Throws UserError for this key if the text has a placeholder that is not in `known`.
void require_placeholders(const Setting& text, const std::vector<std::string>& known);

}  // namespace tutti
