#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// Like printf; at most 255 bytes.
[[gnu::format(printf, 1, 2)]] std::string formatted(const char* format, ...);

// "4,810"
std::string grouped(int64_t number);

// Which printf and streams write as "nan", never "-nan".
inline double without_nan_sign(double value) { return value == value ? value : __builtin_nan(""); }

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Converts A-Z to a-z; other characters are unchanged.
std::string lower_case(std::string_view text);

// True if the text is valid UTF-8 (RFC 3629), as TOML and JSON require, without surrogates and overlong
// forms.
bool is_utf8(std::string_view text);

// Replaces invalid UTF-8 by U+FFFD, as Python's errors="replace": once for each beginning of a character that
// does not continue, and for each other byte.
std::string as_utf8(std::string_view text);

// The normal form of a path: absolute, without ".", ".." and a final slash. Links are not followed.
std::string plain_path(const std::string& path);

// True if the folder is the parent of `path`.
bool lies_in(const std::string& path, const std::string& folder);

}  // namespace tutti
