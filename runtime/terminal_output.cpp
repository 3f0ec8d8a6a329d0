#include "runtime/terminal_output.h"

#include <poll.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

#include "runtime/broken_pipe.h"

namespace tutti {
namespace {

constexpr std::size_t kMostUnshown = 1 << 16;  // bytes
constexpr std::size_t kTerminalTakes = 256;    // bytes; less than the room with which it calls itself ready

int64_t lines_in(const std::string& text) {
  return std::max<int64_t>(1, std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TerminalOutput::TerminalOutput(std::FILE* out) : out_(out), descriptor_(out ? ::fileno(out) : -1) {
  most_at_once_ = descriptor_ >= 0 && ::isatty(descriptor_) ? kTerminalTakes : PIPE_BUF;
}

void TerminalOutput::print(const std::string& text) {
  if (!out_) return;
  flush();
  if (unwritten_.size() + text.size() > kMostUnshown)
    lost_ += lines_in(text);
  else
    add(text);
}

void TerminalOutput::print_last(const std::string& text) {
  if (out_) add(text);
}

void TerminalOutput::add(const std::string& text) {
  unwritten_ += text;
  flush();
}

// A pipe that calls itself ready takes PIPE_BUF bytes at once. That the stream is made non-blocking is no
// way: all that share it would find it so.
void TerminalOutput::flush() {
  if (!busy()) return;
  const NoBrokenPipeSignal guard;
  if (descriptor_ < 0) {
    std::fwrite(unwritten_.data(), 1, unwritten_.size(), out_);
    std::fflush(out_);
    unwritten_.clear();
  }
  while (busy() && takes_more()) {
    if (__fpending(out_) > 0 && std::fflush(out_) == 0) continue;  // what others printed before
    const ssize_t done = ::write(descriptor_, unwritten_.data(), std::min(unwritten_.size(), most_at_once_));
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
    unwritten_.erase(0, done < 0 ? std::string::npos : static_cast<std::size_t>(done));  // nobody reads it
  }
}

bool TerminalOutput::takes_more() const {
  pollfd one{descriptor_, POLLOUT, 0};
  return ::poll(&one, 1, 0) > 0;
}

std::string TerminalOutput::trouble() const {
  const int64_t lines = lost_ + (busy() ? lines_in(unwritten_) : 0);
  if (lines == 0) return "";
  return std::to_string(lines) + (lines == 1 ? " line was" : " lines were") +
         " not shown: what reads the output does not keep up";
}

}  // namespace tutti
