#pragma once

#include <spawn.h>
#include <sys/types.h>

#include <string>

namespace tutti {

// Starts a command line with /bin/sh, in a new process group, out of reach of Ctrl-C; with signals unblocked
// and at their defaults, and no files but its standard streams.
class ShellStart {
 public:
  ShellStart();
  ~ShellStart();
  ShellStart(const ShellStart&) = delete;
  ShellStart& operator=(const ShellStart&) = delete;

  // A standard stream of the command is a file of this process, or a file that the command opens. In order 0,
  // 1, 2.
  void use(int stream, int file);
  void open(int stream, const std::string& path, int flags);

  // Once. Throws OperatingError.
  pid_t start(const std::string& command);

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// A word as a shell reads it back: in quotes, if it has other than plain characters.
std::string shell_word(const std::string& word);

// "exit code 1" or "signal 9", by the status of waitpid.
std::string outcome_text(int status);

}  // namespace tutti
