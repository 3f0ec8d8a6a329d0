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

std::string escaped(uint32_t code) {
  if (code == '\n') return "\\n";
  return code < 0x100 ? formatted("\\x%02x", code) : formatted("\\u%04x", code);
}

// `kept`: the control characters that stay.
std::string without_controls(std::string_view text, std::string_view kept) {
  const std::string whole = as_utf8(text);
  std::string out;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const Control control = control_at(whole, i);
    if (control.bytes == 0 || kept.find(whole[i]) != kept.npos) {
      out += whole[i];
    } else {
      out += escaped(control.code);
      i += control.bytes - 1;
    }
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

// The marks are those of Unicode's property Bidi_Control, and its ends of lines and paragraphs.
Control control_at(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(at);
  const auto first = static_cast<unsigned char>(rest[0]);
  if (first < 0x20 || first == 0x7f) return {first, 1};
  const std::size_t bytes = first == 0xe2 ? 3 : first == 0xc2 || first == 0xd8 ? 2 : 0;
  if (bytes == 0 || rest.size() < bytes) return {};
  uint32_t code = first & (bytes == 3 ? 0x0f : 0x1f);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!is_continuation(rest[i])) return {};
    code = code << 6 | (static_cast<unsigned char>(rest[i]) & 0x3f);
  }
  const bool is_c1 = code < 0xa0, turns = code == 0x061c || code == 0x200e || code == 0x200f ||
                                          (code >= 0x2028 && code <= 0x202e) ||
                                          (code >= 0x2066 && code <= 0x2069);
  return is_c1 || turns ? Control{code, bytes} : Control{};
}

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
