#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tutti {

// A character that a terminal obeys and does not show: a control character (C0, DEL, C1), or a mark by which
// text runs in another direction (U+061C, U+200E, U+202A to U+202E, ...).
struct Control {
  uint32_t code = 0;
  std::size_t bytes = 0;  // of UTF-8; 0 if the character is no control
};
Control control_at(std::string_view text, std::size_t at);

// Makes a message safe for a terminal or a log: escapes such characters other than line breaks (\x1b,
// \u202e), replaces bytes that are not UTF-8, and leaves out the middle of a long message.
std::string printable(std::string_view message);

// Makes a value safe for a message: as above, but also escapes line breaks and cuts behind 60 bytes.
std::string shown(std::string_view value);

// Makes a text of any length safe for a terminal: as `printable`, but tabs stay and the whole text is kept.
std::string terminal_text(std::string_view text);

// Writes a printable text to standard output. It must have no colors.
void print_text(std::string_view text);

// Makes a whole value safe, on one line: for a path, or a comment of a recipe.
std::string on_one_line(std::string_view value);

// True if the value is UTF-8 and no character is escaped.
bool is_printable(std::string_view value);

// "error: message" with a line break at the end, safe for a terminal. With `colours`, "error", the carets and
// the numbers of lines (Position::excerpt) have the colours of compilers' messages.
std::string error_text(const std::string& message, bool colours);

// "error: ..." and "warning: ..." on standard error; an error in colours where that is a terminal and neither
// NO_COLOR nor TERM=dumb is set.
void print_error(const std::string& message);
void print_warning(const std::string& message);

}  // namespace tutti
