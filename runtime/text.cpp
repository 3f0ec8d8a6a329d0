#include "runtime/text.h"

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

// Bytes of the first character of `text`; 0 if invalid.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t bytes = encoded_bytes(byte(0));
  if (bytes == 0 || bytes > text.size()) return 0;
  uint32_t code = byte(0) & (0xff >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool too_long = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xd800 && code < 0xe000;
  return too_long || surrogate || code > 0x10ffff ? 0 : bytes;
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
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string characters;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    characters += bytes == 0 ? "\xef\xbf\xbd" : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
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
