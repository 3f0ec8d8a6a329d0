#include "runtime/process/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "runtime/broken_pipe.h"
#include "runtime/error.h"

extern char** environ;

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
  std::string outcome() override {
    if (!ended()) return "";
    if (WIFSIGNALED(*status_)) return "signal " + std::to_string(WTERMSIG(*status_));
    return "exit code " + std::to_string(WEXITSTATUS(*status_));
  }
  void kill() override {
    if (!ended()) ::kill(-pid_, SIGKILL);
  }

 private:
  pid_t pid_;
  int input_;  // -1 if closed
  std::optional<int> status_;
};

// Opens the child's standard streams, closes all other files and unblocks all signals.
class SpawnOptions {
 public:
  SpawnOptions(int input, const std::string& output_path) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, input, STDIN_FILENO);
    posix_spawn_file_actions_addopen(&actions_, STDOUT_FILENO, output_path.c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW, 0666);
    posix_spawn_file_actions_adddup2(&actions_, STDOUT_FILENO, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
    posix_spawnattr_init(&attributes_);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnOptions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnOptions(const SpawnOptions&) = delete;

  int spawn(pid_t& pid, const std::string& command) {
    std::string shell = "sh", option = "-c", text = command;
    char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
    return posix_spawn(&pid, "/bin/sh", &actions_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

std::unique_ptr<ChildProcess> start_child(const std::string& command, const std::string& output_path) {
  std::error_code ignored;  // without the folder the child fails to start
  std::filesystem::create_directories(std::filesystem::path(output_path).parent_path(), ignored);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    throw OperatingError("cannot make a pipe: " + std::string(strerror(errno)));
  fcntl(ends[1], F_SETFL, O_NONBLOCK);
  pid_t pid = 0;
  const int error = SpawnOptions(ends[0], output_path).spawn(pid, command);
  close(ends[0]);
  if (error == 0) return std::make_unique<Child>(pid, ends[1]);
  close(ends[1]);
  throw OperatingError("cannot start '" + command + "': " + strerror(error));
}

}  // namespace tutti
