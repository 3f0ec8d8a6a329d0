#pragma once

#include <string>
#include <string_view>

namespace tutti {

// With the letters A to Z as a to z, and everything else as it is.
std::string lower_case(std::string_view text);

// Whether a text is UTF-8 (RFC 3629), as TOML and JSON want theirs: no stray bytes, no surrogates, nothing
// longer than it need be.
bool is_utf8(std::string_view text);

// The text, U+FFFD in the place of each byte that is of no character.
std::string as_utf8(std::string_view text);

// The same text for the same file or folder, however it was written: absolute, without "." and "..", without
// a slash at its end. Links are not followed.
std::string plain_path(const std::string& path);

// Whether it lies in the folder, and not in one below.
bool lies_in(const std::string& path, const std::string& folder);

}  // namespace tutti
