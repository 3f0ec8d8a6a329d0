#include "data/tokenizers/unicode/byte_characters.h"

#include <array>

#include "data/tokenizers/unicode/code_points.h"

namespace tutti {

// Bytes that are printed stand for themselves, the others for characters from 256 on.
void append_byte_character(std::string& text, unsigned char byte) {
  static const auto table = [] {
    std::array<uint32_t, 256> characters{};
    uint32_t next = 256;
    for (uint32_t b = 0; b < 256; ++b) {
      const bool is_printed = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      characters[b] = is_printed ? b : next++;
    }
    return characters;
  }();
  append_utf8(text, table[byte]);
}

std::string byte_characters(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) append_byte_character(text, static_cast<unsigned char>(byte));
  return text;
}

}  // namespace tutti
