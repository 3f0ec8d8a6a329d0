#pragma once

#include <string>

namespace tutti {

// Puts `value` in the place of every `field` that stands in the text: of "{rank}" 3.
void put_in(std::string& text, const std::string& field, const std::string& value);

}  // namespace tutti
