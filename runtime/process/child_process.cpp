#include "runtime/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runtime/broken_pipe.h"
#include "runtime/error.h"
#include "runtime/process/shell.h"

namespace tutti {
namespace {

class Child final : public ChildProcess {
 public:
  Child(pid_t pid, int input) : pid_(pid), input_(input) {}
  ~Child() override { end_input(); }

  int64_t write(std::span<const char> bytes) override {
    if (input_ < 0) return -1;
    const NoBrokenPipeSignal guard;
    const ssize_t done = ::write(input_, bytes.data(), bytes.size());
    if (done >= 0) return done;
    return errno == EAGAIN || errno == EINTR ? 0 : -1;
  }
  void end_input() override {
    if (input_ >= 0) close(input_);
    input_ = -1;
  }
  bool ended() override {
    int status = 0;
    if (!status_ && waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
    return status_.has_value();
  }
  bool succeeded() override { return ended() && WIFEXITED(*status_) && WEXITSTATUS(*status_) == 0; }
  std::string outcome() override { return ended() ? outcome_text(*status_) : ""; }
  void kill() override {
    if (!ended()) ::kill(-pid_, SIGKILL);
  }

 private:
  pid_t pid_;
  int input_;  // -1 if closed
  std::optional<int> status_;
};

}  // namespace

std::unique_ptr<ChildProcess> start_child(const std::string& command, const std::string& output_path) {
  std::error_code ignored;  // without the folder the child fails to start
  std::filesystem::create_directories(std::filesystem::path(output_path).parent_path(), ignored);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw OperatingError("cannot make a pipe: " + std::string(strerror(errno)));
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  ShellStart shell;
  shell.use(STDIN_FILENO, ends[0]);
  shell.open(STDOUT_FILENO, output_path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW);
  shell.use(STDERR_FILENO, STDOUT_FILENO);
  try {
    const pid_t pid = shell.start(command);
    close(ends[0]);
    return std::make_unique<Child>(pid, ends[1]);
  } catch (const OperatingError&) {
    close(ends[0]);
    close(ends[1]);
    throw;
  }
}

}  // namespace tutti
