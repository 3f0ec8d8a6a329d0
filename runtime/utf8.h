#pragma once

#include <string>
#include <string_view>

namespace tutti {

// Whether a text is UTF-8 (RFC 3629), as TOML and JSON want theirs: no stray bytes, no surrogates, nothing
// longer than it need be.
bool is_utf8(std::string_view text);

// The text, U+FFFD in the place of each byte that is of no character.
std::string as_utf8(std::string_view text);

}  // namespace tutti
