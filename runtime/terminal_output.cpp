#include "runtime/terminal_output.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <string_view>

#include "runtime/broken_pipe.h"
#include "runtime/launcher.h"

namespace tutti {
namespace {

constexpr std::size_t kMaxBufferedBytes = 1 << 16;
constexpr std::size_t kTerminalChunkBytes =
    256;  // less than the free space of a terminal that polls as ready

constexpr int kUsualColumns = 80;  // of a terminal that does not know

int columns_of(int descriptor) {
  const char* kind = std::getenv("TERM");
  if (::isatty(descriptor) != 1 || (kind && std::string_view(kind) == "dumb")) return 0;
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

int64_t lines_in(const std::string& text) {
  return std::max<int64_t>(1, std::count(text.begin(), text.end(), '\n'));
}

// SGR parameters of ECMA-48.
const char* parameters_of(TextStyle style) {
  switch (style) {
    case TextStyle::kBold:
      return "1";
    case TextStyle::kDim:
      return "2";
    case TextStyle::kRed:
      return "1;31";
    case TextStyle::kGreen:
      return "32";
    case TextStyle::kYellow:
      return "1;33";
    case TextStyle::kCyan:
      return "36";
  }
  return "";
}

}  // namespace

int terminal_columns(int descriptor) {
  if (descriptor < 0) return 0;
  if (descriptor > STDERR_FILENO || !launched_rank()) return columns_of(descriptor);
  const std::string path = "/proc/" + std::to_string(::getppid()) + "/fd/" + std::to_string(descriptor);
  const int launchers = ::open(path.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
  if (launchers < 0) return 0;
  const int columns = columns_of(launchers);
  ::close(launchers);
  return columns;
}

std::string line_eraser(int descriptor) { return terminal_columns(descriptor) > 0 ? "\r\033[K" : ""; }

bool shows_colors(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return (!no_color || !*no_color) && terminal_columns(descriptor) > 0;
}

std::string styled(bool on, TextStyle style, std::string_view text) {
  if (!on) return std::string(text);
  return std::string("\033[") + parameters_of(style) + 'm' + std::string(text) + "\033[0m";
}

TerminalOutput::TerminalOutput(std::FILE* out)
    : out_(out), descriptor_(out ? ::fileno(out) : -1), eraser_(line_eraser(descriptor_)) {
  chunk_bytes_ = descriptor_ >= 0 && ::isatty(descriptor_) ? kTerminalChunkBytes : PIPE_BUF;
}

void TerminalOutput::print(const std::string& text) {
  if (!out_) return;
  flush();
  if (unwritten_.size() + text.size() > kMaxBufferedBytes)
    lost_ += lines_in(text);
  else
    print_last(text);
}

void TerminalOutput::print_last(const std::string& text) {
  if (!out_) return;
  unwritten_ += eraser_ + text;
  flush();
}

// A pipe that polls as ready takes PIPE_BUF bytes without blocking. O_NONBLOCK is no option: it would apply
// to all processes that share the stream.
void TerminalOutput::flush() {
  if (!busy()) return;
  const NoBrokenPipeSignal guard;
  if (descriptor_ < 0) {
    std::fwrite(unwritten_.data(), 1, unwritten_.size(), out_);
    std::fflush(out_);
    unwritten_.clear();
  }
  while (busy() && writable()) {
    if (__fpending(out_) > 0 && std::fflush(out_) == 0) continue;  // earlier output of other code
    const ssize_t done = ::write(descriptor_, unwritten_.data(), std::min(unwritten_.size(), chunk_bytes_));
    if (done < 0 && (errno == EAGAIN || errno == EINTR)) return;
    unwritten_.erase(0, done < 0 ? std::string::npos : static_cast<std::size_t>(done));  // no reader
  }
}

bool TerminalOutput::writable() const {
  pollfd request{descriptor_, POLLOUT, 0};
  return ::poll(&request, 1, 0) > 0;
}

std::string TerminalOutput::trouble() const {
  const int64_t lines = lost_ + (busy() ? lines_in(unwritten_) : 0);
  if (lines == 0) return "";
  return std::to_string(lines) + (lines == 1 ? " line was" : " lines were") +
         " not shown: the reader of the output is too slow";
}

}  // namespace tutti
