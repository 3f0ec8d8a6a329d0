#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tutti {

// A character of a text, and its bytes in UTF-8.
struct CodePoint {
  uint32_t value = 0;
  uint32_t bytes = 0;
};

// The character that begins at `at` of a valid UTF-8 text.
inline CodePoint code_point_at(const char* at) {
  const auto byte = [at](int i) { return static_cast<uint32_t>(static_cast<unsigned char>(at[i])); };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xe0) return {(first & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  if (first < 0xf0) return {(first & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f), 3};
  return {(first & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f), 4};
}

// The character before `at` > 0 of a valid UTF-8 text.
inline CodePoint code_point_before(std::string_view text, std::size_t at) {
  do --at;
  while ((static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
  return code_point_at(text.data() + at);
}

void append_utf8(std::string& text, uint32_t code_point);

// Properties of a code point in the parts of the `tokenizers` package, from
// data/tokenizers/unicode/unicode.txt (tools/tokenizer_unicode.py asked the package, 0.22.2). The parts have
// different versions of Unicode.
enum CharFlag : uint32_t {
  kLetter = 1U << 0,         // \p{L} of Oniguruma
  kNumber = 1U << 1,         // \p{N} of Oniguruma
  kSpace = 1U << 2,          // \s of Oniguruma
  kWhiteSpace = 1U << 3,     // char::is_whitespace of Rust, \s of its regex
  kWord = 1U << 4,           // \w of Rust's regex
  kNumeric = 1U << 5,        // char::is_numeric of Rust
  kPunctuation = 1U << 6,    // ASCII's, or of class P in unicode_categories
  kControl = 1U << 7,        // what BertNormalizer removes
  kNonspacing = 1U << 8,     // class Mn in unicode_categories
  kCombining = 1U << 9,      // class M in unicode-normalization-alignments
  kExtend = 1U << 10,        // in a grapheme, joins what is before
  kSpacing = 1U << 11,       // likewise, but never between a pictograph and U+200D
  kPrepend = 1U << 12,       // in a grapheme, joins what is behind
  kAlone = 1U << 13,         // a grapheme of its own
  kPictographic = 1U << 14,  // Extended_Pictographic
  kLowers = 1U << 15,        // differs in lower case
  kCanonical = 1U << 16,     // has a canonical decomposition (NFD)
  kCompatible = 1U << 17,    // has another one of compatibility (NFKD)
  kComposes = 1U << 18,      // changes in NFC, or may join a character before
  kClassShift = 24,          // the canonical combining class is in the upper 8 bits
};

// Tables over all code points. Immutable.
class UnicodeTables {
 public:
  using Image = std::u32string;

  uint32_t flags(uint32_t c) const { return blocks_[block_of_[c >> 8]][c & 0xff]; }
  bool has(uint32_t c, uint32_t flags_wanted) const { return (flags(c) & flags_wanted) != 0; }
  uint32_t combining_class(uint32_t c) const { return flags(c) >> kClassShift; }

  const Image& lower(uint32_t c) const { return lower_.at(c); }            // of a code point with kLowers
  const Image& canonical(uint32_t c) const { return canonical_.at(c); }    // with kCanonical; full
  const Image& compatible(uint32_t c) const { return compatible_.at(c); }  // with kCompatible; full
  // The primary composite of two code points, or 0. Without Hangul.
  uint32_t composed(uint32_t first, uint32_t second) const;

 private:
  friend const UnicodeTables& unicode();
  using Images = std::unordered_map<uint32_t, Image>;

  UnicodeTables();
  void read_line(std::string_view name, std::string_view words);
  void set(uint32_t c, uint32_t flags_to_set);
  void add_compositions(const std::vector<bool>& excluded);

  std::array<uint16_t, 0x1100> block_of_{};
  std::vector<std::array<uint32_t, 256>> blocks_;
  Images lower_, canonical_, compatible_;
  std::unordered_map<uint64_t, uint32_t> compositions_;
};

// Read at the first call, in some milliseconds.
const UnicodeTables& unicode();

}  // namespace tutti
