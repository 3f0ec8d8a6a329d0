#include "runtime/printable.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "runtime/terminal_output.h"
#include "runtime/text.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxValueBytes = 60;
constexpr std::size_t kFirstBytes = 3000;
constexpr std::size_t kLastBytes = 1000;

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

// The last position up to `at` where a character begins.
std::size_t character_before(std::string_view text, std::size_t at) {
  while (at > 0 && at < text.size() && is_continuation(text[at])) --at;
  return at;
}

// U+0080 to U+009F are control characters too, encoded as C2 and a second byte.
bool is_c1(std::string_view text, std::size_t at) {
  return text[at] == '\xc2' && at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '\x7f'; }

std::string escaped(char c) {
  static constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
}

// `kept`: the control characters that stay.
std::string without_controls(std::string_view text, std::string_view kept) {
  const std::string whole = as_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const char c = whole[i];
    if (is_c1(whole, i))
      out += escaped(whole[++i]);
    else if (!is_control(c) || kept.find(c) != kept.npos)
      out += c;
    else
      out += c == '\n' ? "\\n" : escaped(c);
  }
  return out;
}

constexpr std::string_view kError = "error:";

// "error:" at the beginning, a number of a line, carets.
std::string line_in_colours(std::string_view line) {
  if (line.starts_with(kError))
    return styled(true, TextStyle::kRed, kError) + std::string(line.substr(kError.size()));
  const std::size_t bar = line.find_first_not_of(" 0123456789");
  if (bar == line.npos || bar < 2 || line.substr(bar - 1, 3) != " | ") return std::string(line);
  const std::string_view gutter = line.substr(0, bar + 1), rest = line.substr(bar + 1);
  const bool carets = rest.find_first_not_of(" ^") == rest.npos;
  return styled(true, TextStyle::kCyan, gutter) +
         (carets ? styled(true, TextStyle::kRed, rest) : std::string(rest));
}

std::string in_colours(std::string_view text) {
  std::string out;
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    out += line_in_colours(text.substr(0, end)) + '\n';
  return out + line_in_colours(text);
}

}  // namespace

std::string printable(std::string_view message) {
  if (message.size() <= kFirstBytes + kLastBytes) return without_controls(message, "\n");
  const std::size_t first = character_before(message, kFirstBytes);
  const std::size_t last = character_before(message, message.size() - kLastBytes);
  return without_controls(message.substr(0, first), "\n") + " ... (" + std::to_string(last - first) +
         " bytes) ... " + without_controls(message.substr(last), "\n");
}

std::string shown(std::string_view value) {
  if (value.size() <= kMaxValueBytes) return without_controls(value, "");
  return without_controls(value.substr(0, character_before(value, kMaxValueBytes)), "") + "...";
}

std::string terminal_text(std::string_view text) { return without_controls(text, "\n\t"); }

void print_text(std::string_view text) { std::fputs(terminal_text(text).c_str(), stdout); }

std::string on_one_line(std::string_view value) { return without_controls(value, ""); }

bool is_printable(std::string_view value) { return on_one_line(value) == value; }

// Each of several errors is cut for itself.
std::string error_text(const std::string& message, bool colours) {
  std::string text = std::string(kError) + ' ';
  for (std::size_t begin = 0; begin <= message.size();) {
    const std::size_t end = std::min(message.find("\n\n", begin), message.size());
    text += printable(std::string_view(message).substr(begin, end - begin)) + '\n';
    if (end + 2 < message.size()) text += '\n';
    begin = end + 2;
  }
  return colours ? in_colours(text) : text;
}

void print_error(const std::string& message) {
  std::fputs((line_eraser(STDERR_FILENO) + error_text(message, shows_colors(STDERR_FILENO))).c_str(), stderr);
}

void print_warning(const std::string& message) {
  const std::string label = styled(shows_colors(STDERR_FILENO), TextStyle::kYellow, "warning:");
  std::fprintf(stderr, "%s%s %s\n", line_eraser(STDERR_FILENO).c_str(), label.c_str(),
               printable(message).c_str());
}

}  // namespace tutti
