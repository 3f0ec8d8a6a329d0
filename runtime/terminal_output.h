#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

namespace tutti {

// Text for people, on a stream of which a terminal or another program reads, or stops to: nobody here waits
// for the reader. What it does not take yet is kept, up to 64 KiB; what there is no room for is dropped,
// whole, and counted. The stream may be shared with others, and stays as they know it. One thread at a time.
class TerminalOutput {
 public:
  explicit TerminalOutput(std::FILE* out);  // null: nothing is shown

  bool shown() const { return out_ != nullptr; }
  void print(const std::string& text);
  void print_last(const std::string& text);  // there is always room for it
  void flush();                              // as much as the reader takes at once
  bool busy() const { return !unwritten_.empty(); }
  // "" where all was shown, else how many lines were dropped, or still wait.
  std::string trouble() const;

 private:
  void add(const std::string& text);
  bool takes_more() const;

  std::FILE* out_;
  int descriptor_ = -1;  // -1: memory alone takes it
  std::size_t most_at_once_ = 0;
  std::string unwritten_;
  int64_t lost_ = 0;  // lines
};

}  // namespace tutti
