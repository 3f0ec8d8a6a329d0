#include "data/chats/jinja_lexer.h"

#include <algorithm>
#include <array>

#include "data/chats/jinja_syntax.h"
#include "data/tokenizers/unicode/code_points.h"
#include "runtime/text.h"

namespace tutti::jinja {
namespace {

constexpr std::string_view kBlanks = " \t\n\r\f\v";
constexpr std::string_view kDigits = "0123456789";

bool is_name_start(char c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

class TemplateLexer {
 public:
  explicit TemplateLexer(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i)
      if (text[i] != '\r')
        text_ += text[i];
      else if (i + 1 == text.size() || text[i + 1] != '\n')
        text_ += '\n';
    if (text_.ends_with('\n')) text_.pop_back();
  }

  std::vector<Piece> pieces() {
    while (at_ < text_.size()) {
      const std::size_t tag = next_tag();
      add_text(tag);
      if (tag == text_.size()) break;
      if (text_[tag + 1] == '#')
        pass_comment();
      else
        add_tag();
    }
    return std::move(pieces_);
  }

 private:
  std::size_t next_tag() const {
    for (std::size_t i = text_.find('{', at_); i < text_.size(); i = text_.find('{', i + 1))
      if (at(i + 1) == '{' || at(i + 1) == '%' || at(i + 1) == '#') return i;
    return text_.size();
  }

  char at(std::size_t place) const { return place < text_.size() ? text_[place] : '\0'; }

  // The text up to a tag, and the tag's first characters.
  void add_text(std::size_t tag) {
    std::string text = text_.substr(at_, tag - at_);
    const int line = line_;
    move_to(tag);
    const char sign = at(tag + 2);
    if (sign == '-' && tag < text_.size()) {
      text.erase(text.find_last_not_of(kBlanks) + 1);
    } else if (sign != '+' && (at(tag + 1) == '%' || at(tag + 1) == '#')) {
      const std::size_t begin = text.rfind('\n') + 1;
      const bool begins_line = begin > 0 || line_begins_;
      if (begins_line && text.find_first_not_of(kBlanks, begin) == std::string::npos) text.resize(begin);
    }
    if (!text.empty()) pieces_.push_back({.text = std::move(text), .line = line});
  }

  // Behind the end of a tag that begins there: `end` is its last two characters.
  void pass_end(std::size_t end, bool is_block) {
    const bool strips = at(end - 1) == '-', keeps = at(end - 1) == '+';
    std::size_t next = end + 2;
    if (strips)
      next = std::min(text_.find_first_not_of(kBlanks, next), text_.size());
    else if (is_block && !keeps && at(next) == '\n')
      ++next;
    move_to(next);
    line_begins_ = text_[next - 1] == '\n';
  }

  void pass_comment() {
    const std::size_t end = text_.find("#}", at_ + 2);
    if (end == std::string::npos) fail_at(line_, "a comment does not end");
    pass_end(end, true);
  }

  void add_tag() {
    const bool is_block = text_[at_ + 1] == '%';
    const std::string_view closing = is_block ? "%}" : "}}";
    Piece piece{.part = is_block ? Part::kStatement : Part::kOutput, .line = line_};
    move_to(at_ + 2);
    if (at(at_) == '-' || at(at_) == '+') move_to(at_ + 1);
    int open = 0;  // brackets
    for (;;) {
      move_to(std::min(text_.find_first_not_of(kBlanks, at_), text_.size()));
      if (at_ == text_.size()) fail_at(piece.line, "a tag does not end");
      const bool has_sign = at(at_) == '-' || (is_block && at(at_) == '+');
      const std::size_t end = at_ + (has_sign ? 1 : 0);
      if (open == 0 && std::string_view(text_).substr(end).starts_with(closing)) {
        piece.words.push_back({Word::Kind::kEnd, "", line_});
        pass_end(end, is_block);
        break;
      }
      piece.words.push_back(word());
      if (piece.words.back().kind != Word::Kind::kOperator) continue;
      const char c = piece.words.back().text[0];
      open += c == '(' || c == '[' || c == '{' ? 1 : c == ')' || c == ']' || c == '}' ? -1 : 0;
    }
    pieces_.push_back(std::move(piece));
  }

  Word word() {
    const char c = at(at_);
    const int line = line_;
    if (c == '\'' || c == '"') return {Word::Kind::kText, quoted_text(c), line};
    if (is_name_start(c)) {
      std::size_t end = at_;
      while (is_name_start(at(end)) || is_digit(at(end))) ++end;
      return {Word::Kind::kName, cut(end), line};
    }
    if (is_digit(c)) {
      std::size_t end = std::min(text_.find_first_not_of(kDigits, at_), text_.size());
      if (at(end) != '.' || !is_digit(at(end + 1))) return {Word::Kind::kInteger, cut(end), line};
      end = std::min(text_.find_first_not_of(kDigits, end + 1), text_.size());
      return {Word::Kind::kFloat, cut(end), line};
    }
    constexpr std::array<std::string_view, 6> kPairs = {"==", "!=", "<=", ">=", "//", "**"};
    const std::string_view two = std::string_view(text_).substr(at_, 2);
    if (std::ranges::find(kPairs, two) != kPairs.end()) return {Word::Kind::kOperator, cut(at_ + 2), line};
    if (std::string_view("+-*/%<>()[]{},:.|=~").find(c) == std::string_view::npos)
      fail_at(line_, std::string("the character '") + c + "' in a tag");
    return {Word::Kind::kOperator, cut(at_ + 1), line};
  }

  std::string cut(std::size_t end) {
    std::string text = text_.substr(at_, end - at_);
    move_to(end);
    return text;
  }

  // Python's escapes, as far as jinja2 knows them.
  std::string quoted_text(char quote) {
    std::string out;
    std::size_t i = at_ + 1;
    for (; at(i) != quote; ++i) {
      if (i >= text_.size()) fail_at(line_, "a quoted text does not end");
      if (text_[i] != '\\') {
        out += text_[i];
        continue;
      }
      ++i;
      constexpr std::string_view kLetters = "nrt0bf\\'\"";
      constexpr std::string_view kMeant("\n\r\t\0\b\f\\'\"", kLetters.size());
      const std::size_t digits = at(i) == 'x' ? 2 : at(i) == 'u' ? 4 : 0;
      if (const std::size_t known = kLetters.find(at(i)); known != std::string_view::npos) {
        out += kMeant[known];
      } else if (digits > 0) {
        const std::string hex = text_.substr(i + 1, digits);
        if (hex.size() != digits || hex.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
          fail_at(line_, "a wrong escape in a quoted text");
        append_utf8(out, static_cast<uint32_t>(std::stoul(hex, nullptr, 16)));
        i += digits;
      } else {
        (out += '\\') += at(i);
      }
    }
    move_to(i + 1);
    return out;
  }

  void move_to(std::size_t place) {
    line_ += static_cast<int>(
        std::count(text_.begin() + std::ptrdiff_t(at_), text_.begin() + std::ptrdiff_t(place), '\n'));
    at_ = place;
  }

  std::string text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_begins_ = true;
  std::vector<Piece> pieces_;
};

}  // namespace

std::vector<Piece> pieces_of(std::string_view text) { return TemplateLexer(text).pieces(); }

}  // namespace tutti::jinja
