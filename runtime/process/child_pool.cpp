#include "runtime/process/child_pool.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr int kCannotStart = 127;  // exit code, as of a shell

// In the child: never returns. Async-signal-safe.
[[noreturn]] void become(char* const* words, int output, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(kCannotStart);  // the parent ended before
  const int input = open("/dev/null", O_RDONLY);
  dup2(input, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  execvp(words[0], words);
  const char* const why = strerror(errno);
  static_cast<void>(!write(STDERR_FILENO, why, strlen(why)));
  _exit(kCannotStart);
}

}  // namespace

ChildPool::ChildPool() {
  sigemptyset(&watched_);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) sigaddset(&watched_, signal);
  sigprocmask(SIG_BLOCK, &watched_, &before_);
}

ChildPool::~ChildPool() {
  signal_all(SIGKILL);
  for (const auto& [pid, id] : running_) waitpid(pid, nullptr, 0);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void ChildPool::start(int id, const std::vector<std::string>& words, const std::string& output_path) {
  const int output = open(output_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (output < 0) throw OperatingError({output_path}, std::string("cannot be written: ") + strerror(errno));
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(arguments.data(), output, parent);
  close(output);
  if (pid < 0) throw OperatingError(words[0] + ": cannot start: " + strerror(errno));
  setpgid(pid, pid);  // as the child does, whoever is first
  running_[pid] = id;
}

std::optional<ChildPool::Ended> ChildPool::reap() {
  for (const auto& [pid, id] : running_) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) != pid) continue;
    const Ended ended{id, status};
    running_.erase(pid);
    return ended;
  }
  return std::nullopt;
}

std::optional<ChildPool::Ended> ChildPool::wait(Nanoseconds timeout) {
  if (const auto ended = reap()) return ended;
  const int64_t ns = timeout.count();
  const timespec limit{ns / 1'000'000'000, ns % 1'000'000'000};
  const int signal = sigtimedwait(&watched_, nullptr, &limit);
  if (signal > 0 && signal != SIGCHLD) {
    stop_asked_ = true;
    return std::nullopt;
  }
  return reap();
}

void ChildPool::signal_all(int signal) const {
  for (const auto& [pid, id] : running_) ::kill(-pid, signal);
}

}  // namespace tutti
