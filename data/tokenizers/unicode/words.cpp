#include "data/tokenizers/unicode/words.h"

#include <algorithm>

#include "data/tokenizers/unicode/code_points.h"

namespace tutti {
namespace {

// Unicode's property White_Space lacks the four separators of information.
bool is_blank(uint32_t c) { return (c >= 0x1c && c <= 0x1f) || unicode().has(c, kWhiteSpace); }

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0, at = 0;
  const auto end_word = [&] {
    if (at > begin) words.push_back(text.substr(begin, at - begin));
  };
  while (at < text.size()) {
    const CodePoint c = code_point_at(text.data() + at);
    if (is_blank(c.value)) {
      end_word();
      begin = at + c.bytes;
    }
    at += c.bytes;
  }
  end_word();
  return words;
}

std::string_view without_blanks_behind(std::string_view text) {
  while (!text.empty()) {
    const CodePoint last = code_point_before(text, text.size());
    if (!is_blank(last.value)) break;
    text.remove_suffix(last.bytes);
  }
  return text;
}

std::string_view without_blanks_around(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = code_point_at(text.data());
    if (!is_blank(first.value)) break;
    text.remove_prefix(first.bytes);
  }
  return without_blanks_behind(text);
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

}  // namespace tutti
