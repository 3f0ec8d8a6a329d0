#pragma once

#include <functional>
#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// Replaces every `field` in the text by `value`: "{rank}" by "3".
void replace_all(std::string& text, const std::string& field, const std::string& value);

// Splits a text at its placeholders, "ep{epoch}-ba{batch}": calls `on_text` with each text between
// placeholders, and `on_placeholder` with each name. Throws UserError for a { without }.
void walk_placeholders(const std::string& pattern, const std::function<void(const std::string&)>& on_text,
                       const std::function<void(const std::string&)>& on_placeholder);

// Throws UserError for an unknown placeholder; suggests the nearest of `known`.
[[noreturn]] void refuse_placeholder(const std::string& placeholder, const std::vector<std::string>& known);

// Throws UserError for this key if the text has a placeholder that is not in `known`.
void require_placeholders(const Setting& text, const std::vector<std::string>& known);

}  // namespace tutti
