#include "runtime/text.h"

#include <algorithm>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>

namespace tutti {
namespace {

// Bytes of the character that begins with this byte; 0 if no character does.
std::size_t encoded_bytes(unsigned char first) {
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

// True if the second byte may follow the first one. Other pairs are overlong, surrogates, or beyond Unicode.
bool may_follow(unsigned char first, unsigned char second) {
  const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

// The first character of a text, or the longest beginning of one, at least a byte.
struct FirstCharacter {
  std::size_t bytes = 1;
  bool whole = false;
};

FirstCharacter first_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t whole = encoded_bytes(byte(0));
  std::size_t good = 1;
  while (good < std::min(whole, text.size()) &&
         (good == 1 ? may_follow(byte(0), byte(1)) : (byte(good) & 0xc0) == 0x80))
    ++good;
  return {good, good == whole};
}

}  // namespace

std::string formatted(const char* format, ...) {
  char text[256];
  va_list values;
  va_start(values, format);
  std::vsnprintf(text, sizeof text, format, values);
  va_end(values);
  return text;
}

std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (auto i = std::ssize(digits) - 3; i > 0; i -= 3) digits.insert(static_cast<std::size_t>(i), ",");
  return digits;
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return lower;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const FirstCharacter first = first_character(text);
    if (!first.whole) return false;
    text.remove_prefix(first.bytes);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string characters;
  while (!text.empty()) {
    const FirstCharacter first = first_character(text);
    characters += first.whole ? text.substr(0, first.bytes) : "\xef\xbf\xbd";
    text.remove_prefix(first.bytes);
  }
  return characters;
}

std::string plain_path(const std::string& path) {
  std::string plain = std::filesystem::absolute(path).lexically_normal().string();
  if (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
  return plain;
}

bool lies_in(const std::string& path, const std::string& folder) {
  return std::filesystem::path(plain_path(path)).parent_path() == plain_path(folder);
}

}  // namespace tutti
