#pragma once

#include <functional>
#include <string>
#include <vector>

#include "recipe/setting.h"

namespace tutti {

// Puts `value` in the place of every `field` that stands in the text: of "{rank}" 3.
void replace_all(std::string& text, const std::string& field, const std::string& value);

// A text cut at its placeholders, "ep{epoch}-ba{batch}": `on_text` and `on_placeholder` are called in turn,
// with what is between the braces. Throws UserError where one has no }.
void walk_placeholders(const std::string& pattern, const std::function<void(const std::string&)>& on_text,
                       const std::function<void(const std::string&)>& on_placeholder);

// Throws the UserError of a placeholder that is none of `known`.
[[noreturn]] void refuse_placeholder(const std::string& placeholder, const std::vector<std::string>& known);

// Throws UserError, of this key, where its text has any but the known ones.
void require_placeholders(const Setting& text, const std::vector<std::string>& known);

}  // namespace tutti
