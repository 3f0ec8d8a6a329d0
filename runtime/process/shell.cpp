#include "runtime/process/shell.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "runtime/error.h"

extern char** environ;

namespace tutti {

ShellStart::ShellStart() {
  posix_spawn_file_actions_init(&actions_);
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

ShellStart::~ShellStart() {
  posix_spawn_file_actions_destroy(&actions_);
  posix_spawnattr_destroy(&attributes_);
}

void ShellStart::use(int stream, int file) { posix_spawn_file_actions_adddup2(&actions_, file, stream); }

void ShellStart::open(int stream, const std::string& path, int flags) {
  posix_spawn_file_actions_addopen(&actions_, stream, path.c_str(), flags, 0600);
}

pid_t ShellStart::start(const std::string& command) {
  posix_spawn_file_actions_addclosefrom_np(&actions_, STDERR_FILENO + 1);
  std::string shell = "sh", option = "-c", text = command;
  char* arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t pid = 0;
  const int error = posix_spawn(&pid, "/bin/sh", &actions_, &attributes_, arguments, environ);
  if (error != 0) throw OperatingError(std::string("cannot start sh for a command: ") + strerror(error));
  return pid;
}

std::string shell_word(const std::string& word) {
  static constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
  return quoted + "'";
}

std::string outcome_text(int status) {
  if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
  return "exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace tutti
