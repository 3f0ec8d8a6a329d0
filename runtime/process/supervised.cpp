#include "runtime/process/supervised.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "runtime/error.h"

namespace tutti {
namespace {

constexpr timespec kRepeat{0, 250'000'000};
constexpr std::chrono::seconds kStart(30), kFlush(2);

// Signals that ask to stop, SIGTSTP (Ctrl-Z) and SIGCHLD, but those that the starter of this process ignores
// (nohup).
sigset_t signals_to_forward() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGTSTP, SIGCHLD}) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    if (action.sa_handler != SIG_IGN || signal == SIGCHLD) sigaddset(&watched, signal);
  }
  return watched;
}

// In the child: never returns. `failure` is closed by the start of the program, and else gets errno.
[[noreturn]] void become_supervised(char* const* words, const sigset_t& mask, pid_t parent, int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);  // the parent ended before
  sigprocmask(SIG_SETMASK, &mask, nullptr);
  execvp(words[0], words);
  const int why = errno;
  static_cast<void>(!write(failure, &why, sizeof why));
  _exit(1);
}

bool is_pipe(int stream) {
  struct stat status {};
  return fstat(stream, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode));
}

// Copies a program's output in a process of its own. A reader that leaves, as head does, ends mpirun; here
// the rest of the output is thrown away. The program is the only holder of the pipe's end that it gets.
class Relay {
 public:
  // Replaces the stream of this process until it is undone; the program inherits the replacement.
  explicit Relay(int stream) : stream_(stream) {
    int ends[2];
    if (!is_pipe(stream) || pipe2(ends, O_CLOEXEC) != 0) return;
    kept_ = fcntl(stream, F_DUPFD_CLOEXEC, 3);
    pid_ = fork();
    if (pid_ == 0) {
      setpgid(0, 0);
      close(ends[1]);
      copy(ends[0], kept_);
    }
    close(ends[0]);
    if (pid_ > 0) dup2(ends[1], stream);
    close(ends[1]);
  }
  Relay(const Relay&) = delete;
  ~Relay() { await(); }

  void give_back() {
    if (pid_ > 0 && kept_ >= 0) dup2(kept_, stream_), close(std::exchange(kept_, -1));
  }
  // A while: a reader that pauses, or a process that outlives mpirun, is left to the copying process.
  void await() {
    give_back();
    const auto until = std::chrono::steady_clock::now() + kFlush;
    while (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pid_ = -1;
  }

 private:
  [[noreturn]] static void copy(int from, int to) {
    signal(SIGPIPE, SIG_IGN);
    char bytes[1 << 16];
    for (bool open = true;;) {
      const ssize_t size = read(from, bytes, sizeof bytes);
      if (size == 0 || (size < 0 && errno != EINTR)) _exit(0);
      for (ssize_t done = 0; open && done < size;) {
        const ssize_t written = write(to, bytes + done, static_cast<std::size_t>(size - done));
        if (written < 0 && errno != EINTR) open = false;
        if (written > 0) done += written;
      }
    }
  }

  int stream_;
  int kept_ = -1;
  pid_t pid_ = -1;
};

pid_t start_supervised(const std::vector<std::string>& words, const sigset_t& mask) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) throw OperatingError(std::string("no pipe: ") + std::strerror(errno));
  const pid_t parent = getpid(), child = fork();
  if (child == 0) become_supervised(arguments.data(), mask, parent, failure[1]);
  int why = errno;
  close(failure[1]);
  const bool failed = child < 0 || read(failure[0], &why, sizeof why) == sizeof why;
  close(failure[0]);
  if (failed) throw OperatingError("cannot start " + words[0] + ": " + std::strerror(why));
  return child;
}

}  // namespace

int run_supervised(const std::vector<std::string>& words) {
  sigset_t before;
  const sigset_t watched = signals_to_forward();
  sigprocmask(SIG_BLOCK, &watched, &before);
  signal(SIGCHLD, SIG_DFL);  // where it is inherited as ignored, no child can be awaited
  const auto began = std::chrono::steady_clock::now();
  Relay out(STDOUT_FILENO), errors(STDERR_FILENO);
  const pid_t child = start_supervised(words, before);
  out.give_back();
  errors.give_back();
  bool asked = false;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0) throw OperatingError("cannot await " + words[0] + ": " + std::strerror(errno));
    if (ended == child) {
      const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      return asked && code == 128 + SIGUSR1 ? 1 : code;  // asked before it could handle the signal
    }
    const int received = sigtimedwait(&watched, nullptr, &kRepeat);
    if (received == SIGCHLD) continue;
    if (received == SIGTSTP) {
      kill(child, SIGTSTP);
      raise(SIGSTOP);
      kill(child, SIGCONT);
    } else if (received > 0) {
      kill(child, asked ? received : SIGUSR1);
      asked = true;
    } else if (asked && std::chrono::steady_clock::now() - began < kStart) {
      kill(child, SIGUSR1);
    }
  }
}

}  // namespace tutti
