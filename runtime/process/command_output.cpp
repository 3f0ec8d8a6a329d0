#include "runtime/process/command_output.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/error.h"
#include "runtime/process/process_watch.h"
#include "runtime/process/shell.h"

namespace tutti {
namespace {

constexpr int kPipeBytes = 1 << 20;  // so that the command works ahead
constexpr std::size_t kKeptErrors = 4096;
constexpr int kLookMs = 10;
constexpr int kWaitMs = 50;

// The two ends of a pipe, closed with the object unless they are released.
struct Pipe {
  int ends[2] = {-1, -1};

  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw OperatingError(std::string("cannot make a pipe: ") + strerror(errno));
  }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
  int release_reader() {
    const int reader = ends[0];
    ends[0] = -1;
    return reader;
  }
};

// Writes the text to a new file that its user alone can read; "" if there can be none.
std::string kept(const std::string& text) {
  std::error_code unknown;
  std::string path = std::filesystem::temp_directory_path(unknown) / "tutti-command-XXXXXX";
  const int file = unknown ? -1 : mkostemp(path.data(), O_CLOEXEC);
  if (file < 0) return "";
  const bool whole = ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  if (!whole) std::filesystem::remove(path, unknown);
  return whole ? path : "";
}

}  // namespace

CommandOutput::CommandOutput(const std::string& command) {
  Pipe output, errors;
  ShellStart shell;
  shell.open(STDIN_FILENO, "/dev/null", O_RDONLY);
  shell.use(STDOUT_FILENO, output.ends[1]);
  shell.use(STDERR_FILENO, errors.ends[1]);
  pid_ = shell.start(command);
  output_ = output.release_reader();
  errors_ = errors.release_reader();
  fcntl(output_, F_SETPIPE_SZ, kPipeBytes);
  fcntl(errors_, F_SETFL, O_NONBLOCK);
}

CommandOutput::~CommandOutput() {
  close(output_);
  close(errors_);
  if (status_) return;
  ::kill(-pid_, SIGKILL);
  wait(0);
}

std::size_t CommandOutput::read(std::span<char> bytes) {
  for (;;) {
    require_no_held_stop("a command was read");
    pollfd files[] = {{output_, POLLIN, 0}, {errors_, POLLIN, 0}};
    if (::poll(files, errors_ < 0 ? 1 : 2, kWaitMs) <= 0) continue;
    if (files[1].revents != 0) read_errors();
    if (files[0].revents == 0) continue;
    const ssize_t count = ::read(output_, bytes.data(), bytes.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno != EINTR) throw OperatingError(std::string("cannot read from a pipe: ") + strerror(errno));
  }
}

// Closes the pipe at its end, which poll would report again and again.
void CommandOutput::read_errors() {
  char bytes[kKeptErrors];
  for (;;) {
    const ssize_t count = errors_ < 0 ? -1 : ::read(errors_, bytes, sizeof bytes);
    if (count == 0) {
      close(errors_);
      errors_ = -1;
    }
    if (count <= 0) return;
    last_errors_.append(bytes, static_cast<std::size_t>(count));
    if (last_errors_.size() > kKeptErrors) last_errors_.erase(0, last_errors_.size() - kKeptErrors);
  }
}

bool CommandOutput::wait(int options) {
  int status = 0;
  pid_t ended = 0;
  do ended = ::waitpid(pid_, &status, options);
  while (ended < 0 && errno == EINTR);
  if (ended == 0) return false;
  status_ = ended == pid_ ? status : 0;
  return true;
}

std::string CommandOutput::failure() {
  while (!status_ && !wait(WNOHANG)) {
    require_no_held_stop("the end of a command was awaited");
    pollfd errors{errors_, POLLIN, 0};
    ::poll(&errors, 1, kLookMs);
    read_errors();
  }
  read_errors();
  if (WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0) return "";
  const std::string path = last_errors_.empty() ? "" : kept(last_errors_);
  return outcome_text(*status_) + (path.empty() ? "" : "; what it printed last is in " + path);
}

}  // namespace tutti
