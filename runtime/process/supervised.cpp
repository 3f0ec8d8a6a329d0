#include "runtime/process/supervised.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/error.h"

namespace tutti {
namespace {

// Signals that ask to stop and SIGCHLD, but those that the starter of this process ignores (nohup).
sigset_t signals_to_forward() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGCHLD}) {
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
  const pid_t child = start_supervised(words, before);
  bool asked = false;
  for (;;) {
    int status = 0, received = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0) throw OperatingError("cannot await " + words[0] + ": " + std::strerror(errno));
    if (ended == child) return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    if (sigwait(&watched, &received) != 0 || received == SIGCHLD) continue;
    kill(child, asked ? received : SIGUSR1);
    asked = true;
  }
}

}  // namespace tutti
