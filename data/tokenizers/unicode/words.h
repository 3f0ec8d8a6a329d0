#pragma once

#include <string_view>
#include <vector>

namespace tutti {

// Texts as Python's str.split() and str.strip() see them: valid UTF-8, where each character that
// str.isspace() knows is a blank. The parts are of the given text.
std::vector<std::string_view> words_of(std::string_view text);
std::string_view without_blanks_behind(std::string_view text);
std::string_view without_blanks_around(std::string_view text);

// The number of characters of valid UTF-8.
std::size_t characters_in(std::string_view text);

}  // namespace tutti
