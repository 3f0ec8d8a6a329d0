#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace tutti {

// Columns of the terminal behind a descriptor, now; 0: no terminal, or TERM is "dumb". mpirun decides about a
// launched rank's standard output and error.
int terminal_columns(int descriptor);

// Erases a line without end, such as a display of progress, where `descriptor` is a terminal; else "".
std::string line_eraser(int descriptor);

enum class TextStyle { kBold, kDim, kRed, kGreen, kYellow, kCyan };

// True if text for people may have colors there: a terminal (terminal_columns), and neither NO_COLOR is set
// (https://no-color.org) nor TERM "dumb".
bool shows_colors(int descriptor);

// The text in the style, if `on`. Not around a line break.
std::string styled(bool on, TextStyle style, std::string_view text);

// Writes text for people to a terminal or a pipe without waiting for a slow reader. On a terminal every text
// takes the place of a line without end. Up to 64 KiB are buffered; a text for which there is no room is
// dropped and counted. The mode of the stream is not changed, so other writers may share the stream. Not
// thread-safe.
class TerminalOutput {
 public:
  explicit TerminalOutput(std::FILE* out);  // null: drops all text

  bool shown() const { return out_ != nullptr; }
  bool on_terminal() const { return !eraser_.empty(); }  // at construction
  int columns() const { return terminal_columns(descriptor_); }
  void print(const std::string& text);
  void print_last(const std::string& text);  // is never dropped, even if the buffer is full
  void flush();                              // writes as much as is possible without blocking
  bool busy() const { return !unwritten_.empty(); }
  // "" if all text was written, else a message with the number of lines that were not.
  std::string trouble() const;

 private:
  bool writable() const;

  std::FILE* out_;
  int descriptor_ = -1;  // -1: a stream in memory
  std::size_t chunk_bytes_ = 0;
  std::string eraser_;
  std::string unwritten_;
  int64_t lost_ = 0;  // lines
};

}  // namespace tutti
