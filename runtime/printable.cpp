#include "runtime/printable.h"

#include <unistd.h>

#include <cstdio>

#include "runtime/terminal_output.h"
#include "runtime/text.h"
#include "runtime/text_style.h"

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

std::string without_controls(std::string_view text, bool keeps_line_breaks) {
  const std::string whole = as_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const char c = whole[i];
    if (is_c1(whole, i))
      out += escaped(whole[++i]);
    else if (c == '\n')
      out += keeps_line_breaks ? "\n" : "\\n";
    else
      out += is_control(c) ? escaped(c) : std::string(1, c);
  }
  return out;
}

void print_labelled(const char* label, TextStyle style, const std::string& message) {
  const std::string shown_label = styled(shows_colors(STDERR_FILENO), style, label);
  std::fprintf(stderr, "%s%s %s\n", line_eraser(STDERR_FILENO).c_str(), shown_label.c_str(),
               printable(message).c_str());
}

}  // namespace

std::string printable(std::string_view message) {
  if (message.size() <= kFirstBytes + kLastBytes) return without_controls(message, true);
  const std::size_t first = character_before(message, kFirstBytes);
  const std::size_t last = character_before(message, message.size() - kLastBytes);
  return without_controls(message.substr(0, first), true) + " ... (" + std::to_string(last - first) +
         " bytes) ... " + without_controls(message.substr(last), true);
}

std::string shown(std::string_view value) {
  if (value.size() <= kMaxValueBytes) return without_controls(value, false);
  return without_controls(value.substr(0, character_before(value, kMaxValueBytes)), false) + "...";
}

void print_error(const std::string& message) { print_labelled("error:", TextStyle::kRed, message); }

void print_warning(const std::string& message) { print_labelled("warning:", TextStyle::kYellow, message); }

}  // namespace tutti
