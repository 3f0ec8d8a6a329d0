#include "data/tokenizers/unicode/scanners.h"

#include <array>

#include "data/tokenizers/unicode/code_points.h"

namespace tutti {
namespace {

// Classes of characters for these expressions. A line break is white space, too.
enum Class : unsigned char { kOther, kL, kN, kS, kBreak };

struct ClassTable {
  std::array<Class, 128> ascii{};
  const UnicodeTables& all = unicode();

  ClassTable() {
    for (uint32_t c = 0; c < 128; ++c) ascii[c] = c == '\r' || c == '\n' ? kBreak : class_of(c);
  }
  Class class_of(uint32_t c) const {
    const uint32_t flags = all.flags(c);
    return flags & kLetter ? kL : flags & kNumber ? kN : flags & kSpace ? kS : kOther;
  }
};

const ClassTable& classes() {
  static const ClassTable table;
  return table;
}

// A place in a text.
class Cursor {
 public:
  Cursor(const ClassTable& table, std::string_view text)
      : table_(table), at_(text.data()), end_(text.data() + text.size()) {
    look();
  }

  bool done() const { return at_ == end_; }
  const char* at() const { return at_; }
  Class next() const { return class_; }  // kOther at the end of the text
  char byte() const { return *at_; }
  bool is(Class expected) const { return !done() && class_ == expected; }
  bool is_space() const { return class_ == kS || class_ == kBreak; }

  void step() {
    at_ += bytes_;
    look();
  }
  void skip(Class skipped) {
    while (is(skipped)) step();
  }

 private:
  void look() {
    class_ = kOther;
    bytes_ = 1;
    if (at_ == end_) return;
    const auto byte = static_cast<unsigned char>(*at_);
    if (byte < 0x80) {
      class_ = table_.ascii[byte];
    } else {
      const CodePoint point = code_point_at(at_);
      class_ = table_.class_of(point.value);
      bytes_ = point.bytes;
    }
  }

  const ClassTable& table_;
  const char* at_;
  const char* end_;
  Class class_ = kOther;
  uint32_t bytes_ = 1;
};

// Bytes of 's, 't, 're, 've, 'm, 'll or 'd, with which the text begins; 0 if it does not. In any case, U+017F
// is an s.
std::size_t contraction(std::string_view text, bool any_case) {
  if (text.size() < 2 || text[0] != '\'') return 0;
  if (any_case && text.substr(1).starts_with("\xc5\xbf")) return 3;
  const auto letter = [&](std::size_t i) {
    const char c = i < text.size() ? text[i] : '\0';
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = letter(1), second = letter(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const bool two = ((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l');
  return two ? 3 : 0;
}

// `\s*[\r\n]+|\s+(?!\S)|\s+` (the first part if `breaks`): white space up to its last line break; else all
// but its last character, which belongs to the next word.
std::size_t white_space(Cursor cursor, const char* begin, bool breaks) {
  const char *last = begin, *behind_break = nullptr;
  for (; !cursor.done() && cursor.is_space(); cursor.step()) {
    last = cursor.at();
    if (cursor.next() == kBreak) behind_break = last + 1;
  }
  if (breaks && behind_break) return static_cast<std::size_t>(behind_break - begin);
  const bool whole = cursor.done() || last == begin;
  return static_cast<std::size_t>((whole ? cursor.at() : last) - begin);
}

std::size_t gpt2_word(std::string_view text) {
  if (const std::size_t bytes = contraction(text, /*any_case=*/false)) return bytes;
  const Cursor first(classes(), text);
  Cursor cursor = first;
  if (cursor.byte() == ' ') cursor.step();
  if (cursor.done() || cursor.is_space()) return white_space(first, text.data(), /*breaks=*/false);
  cursor.skip(cursor.next());
  return static_cast<std::size_t>(cursor.at() - text.data());
}

std::size_t cl100k_word(std::string_view text, int most_digits) {
  if (const std::size_t bytes = contraction(text, /*any_case=*/true)) return bytes;
  const Cursor first(classes(), text);
  Cursor cursor = first;
  const auto bytes = [&] { return static_cast<std::size_t>(cursor.at() - text.data()); };
  if (cursor.next() == kN) {
    for (int i = 0; cursor.is(kN) && (most_digits == 0 || i < most_digits); ++i) cursor.step();
    return bytes();
  }
  if (cursor.next() == kOther || cursor.next() == kS) cursor.step();
  if (cursor.is(kL)) {
    cursor.skip(kL);
    return bytes();
  }
  if (first.next() == kOther || (first.byte() == ' ' && cursor.is(kOther))) {
    cursor.skip(kOther);
    cursor.skip(kBreak);
    return bytes();
  }
  return white_space(first, text.data(), /*breaks=*/true);
}

constexpr char kBeforeDigits[] = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N})";
constexpr char kBehindDigits[] = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

std::size_t WordScanner::first_word(std::string_view text) const {
  return kind == Kind::kGpt2 ? gpt2_word(text) : cl100k_word(text, most_digits);
}

std::optional<WordScanner> scanner_of(const std::string& expression) {
  if (expression == kGpt2Pattern) return WordScanner{};
  const std::string before = kBeforeDigits, behind = kBehindDigits;
  for (const auto& [digits, most] : {std::pair{"", 1}, {"{1,2}", 2}, {"{1,3}", 3}, {"+", 0}})
    if (expression == before + digits + behind) return WordScanner{WordScanner::Kind::kCl100k, most};
  return std::nullopt;
}

}  // namespace tutti
