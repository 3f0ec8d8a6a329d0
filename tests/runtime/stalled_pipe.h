#pragma once

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace tutti {

// A pipe that is full, and whose reader does not read until it is asked to.
class StalledPipe {
 public:
  StalledPipe() {
    int ends[2];
    if (::pipe(ends) != 0) return;
    reader_ = ends[0];
    out = ::fdopen(ends[1], "w");
    const std::string page(4096, '.');
    for (pollfd one{ends[1], POLLOUT, 0}; ::poll(&one, 1, 0) > 0;)
      filling_ += static_cast<std::size_t>(::write(ends[1], page.data(), page.size()));
  }
  ~StalledPipe() {
    std::fclose(out);
    close_reader();
  }
  StalledPipe(const StalledPipe&) = delete;

  // The text that was written since the pipe was full, as far as it has arrived.
  std::string read() {
    ::fcntl(reader_, F_SETFL, O_NONBLOCK);
    std::string text(1 << 20, '\0');
    std::size_t size = 0;
    for (ssize_t got = 1; got > 0; size += static_cast<std::size_t>(got > 0 ? got : 0))
      got = ::read(reader_, text.data() + size, text.size() - size);
    text.resize(size);
    text.erase(0, filling_);
    filling_ = 0;
    return text;
  }
  void close_reader() {
    if (reader_ >= 0) ::close(reader_);
    reader_ = -1;
  }

  std::FILE* out = nullptr;

 private:
  int reader_ = -1;
  std::size_t filling_ = 0;
};

}  // namespace tutti
