#include "data/tokenizers/charsmap.h"

#include <cstring>

#include "data/tokenizers/unicode/code_points.h"
#include "data/tokenizers/unicode/graphemes.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kLongestWholeGrapheme = 5;  // bytes

int digit_of(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

std::optional<std::string> from_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string bytes;
  uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (digit_of(text[i]) < 0) return std::nullopt;
    bits = bits << 6 | static_cast<uint32_t>(digit_of(text[i]));
    if (i % 4 != 0) bytes += static_cast<char>(bits >> (6 - 2 * (i % 4)) & 0xff);
  }
  return bytes;
}

// Whether a character below U+10000 makes no grapheme with another of this kind. Jamo of Hangul may.
bool stands_alone_in_text(uint32_t c) {
  const bool jamo = (c >= 0x1100 && c < 0x1200) || (c >= 0xa960 && c < 0xa980) || (c >= 0xd7b0 && c < 0xd800);
  const bool surrogate = c >= 0xd800 && c < 0xe000;
  constexpr uint32_t kJoining = kExtend | kSpacing | kPrepend | kAlone | kPictographic;
  return !jamo && !surrogate && c != 0x200d && !unicode().has(c, kJoining);
}

// The bits of a unit of Darts-clone's array.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) == 1; }
uint32_t label(uint32_t unit) { return unit & 0x800000ffU; }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200U) >> 6); }

}  // namespace

Charsmap::Charsmap(const JsonPlace& place) {
  const auto bytes = from_base64(place.text());
  uint32_t trie_bytes = 0;
  if (!bytes || bytes->size() < sizeof trie_bytes) place.fail("it is no table in base 64");
  std::memcpy(&trie_bytes, bytes->data(), sizeof trie_bytes);
  if (trie_bytes < sizeof(uint32_t) || trie_bytes > bytes->size() - sizeof trie_bytes)
    place.fail("its first number, " + std::to_string(trie_bytes) + " bytes of a double array, is wrong");
  units_.resize(trie_bytes / sizeof(uint32_t));
  std::memcpy(units_.data(), bytes->data() + sizeof trie_bytes, units_.size() * sizeof(uint32_t));
  replacements_ = bytes->substr(sizeof trie_bytes + units_.size() * sizeof(uint32_t));
  if (!is_utf8(replacements_)) place.fail("its replacements are not UTF-8");
  plain_.resize(0x10000);
  for (uint32_t c = 1; c < plain_.size(); ++c) {
    if (!stands_alone_in_text(c)) continue;
    std::string character;
    append_utf8(character, c);
    plain_[c] = !replacement(character);
  }
}

// A damaged array may lead anywhere: such a place is the end of the walk.
std::optional<std::string_view> Charsmap::replacement(std::string_view part) const {
  uint32_t at = offset(units_[0]);
  for (const char c : part) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0) break;
    at ^= byte;
    if (at >= units_.size() || label(units_[at]) != byte) return std::nullopt;
    const uint32_t unit = units_[at];
    at ^= offset(unit);
    if (at >= units_.size()) return std::nullopt;
    if (!has_leaf(unit)) continue;
    const uint32_t begin = units_[at] & 0x7fffffffU;
    if (begin > replacements_.size()) return std::nullopt;
    const std::string_view all = replacements_;
    const std::string_view replacement = all.substr(begin, all.find('\0', begin) - begin);
    return is_utf8(replacement) ? std::optional(replacement) : std::nullopt;
  }
  return std::nullopt;
}

void Charsmap::add_grapheme(std::string_view grapheme, std::string& out) const {
  if (grapheme.size() <= kLongestWholeGrapheme) {
    const auto whole = replacement(grapheme);
    const bool single = code_point_at(grapheme.data()).bytes == grapheme.size();
    if (whole || single) {
      out += whole.value_or(grapheme);
      return;
    }
  }
  while (!grapheme.empty()) {
    const std::string_view character = grapheme.substr(0, code_point_at(grapheme.data()).bytes);
    out += replacement(character).value_or(character);
    grapheme.remove_prefix(character.size());
  }
}

// A plain character is copied if the next one is plain too: then it is a grapheme.
Change Charsmap::apply(std::string_view text, std::string& out) const {
  const auto is_plain = [this](CodePoint point) {
    return point.value < plain_.size() && plain_[point.value];
  };
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t begin = at;
    CodePoint next = code_point_at(text.data() + at);
    for (bool plain = is_plain(next); plain;) {
      const std::size_t behind = at + next.bytes;
      if (behind < text.size()) next = code_point_at(text.data() + behind);
      plain = behind < text.size() && is_plain(next);
      if (plain || behind == text.size()) at = behind;
    }
    out += text.substr(begin, at - begin);
    if (at == text.size()) break;
    const std::size_t bytes = first_grapheme(text.substr(at));
    add_grapheme(text.substr(at, bytes), out);
    at += bytes;
    require_growth(text.size(), out.size());
  }
  if (out != text) return Change::kText;
  out.clear();
  return Change::kNone;
}

}  // namespace tutti
